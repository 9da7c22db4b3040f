"""Turns the text of workbooks into nodes, and back."""
