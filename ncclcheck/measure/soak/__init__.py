"""What a series of blocks tells: drops and their ends, whom they come from, tails, flaps and trends."""
