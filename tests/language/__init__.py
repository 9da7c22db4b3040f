"""Tests of the language: text to bound statements."""
