"""Calibration on real data: how often answers of each probability are true."""
