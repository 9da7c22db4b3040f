"""Whole events with the roles they can play; shared by SEQUENCE and CONSTRAIN."""
