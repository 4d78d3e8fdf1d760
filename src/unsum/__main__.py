"""`python -m unsum`: the command line."""

from unsum.cli import main

if __name__ == "__main__":
    main()
