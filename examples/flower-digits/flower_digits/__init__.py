"""Digits learned over a simulated radio, as a Flower app without any deep-learning framework."""
