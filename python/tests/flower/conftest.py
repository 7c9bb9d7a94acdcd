"""Flower must not talk to the internet, nor Ray to somebody else's cluster; set before either is imported."""

import os

os.environ["FLWR_TELEMETRY_ENABLED"] = "0"
os.environ["FLWR_DISABLE_UPDATE_CHECK"] = "1"
os.environ["RAY_ADDRESS"] = "local"
os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
