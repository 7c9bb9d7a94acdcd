"""Digits learned over a simulated radio, as a Flower app with PyTorch."""
