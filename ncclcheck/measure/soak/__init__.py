"""The events of a series of blocks: drops and their ends, their sources, tails, flaps and trends."""
