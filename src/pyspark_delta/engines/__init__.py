"""The engines that run statements: their contract, and the Arrow engine."""
