"""All series as draws from one population, learned from the readings of all of them."""
