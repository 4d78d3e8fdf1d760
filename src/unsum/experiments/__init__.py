"""Simulation, hiding a known truth behind readings, and measuring what comes back."""
