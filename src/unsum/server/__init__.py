"""A page on this machine for people who would rather click: uploads, one job at a time."""
