"""What runs statements: the contract of engines, and the Arrow engine."""
