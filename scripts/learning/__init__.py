"""Learn from the labelled logs of the tests what explain keeps as a table."""
