"""What scripts/record is made of."""
