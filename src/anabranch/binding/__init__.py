"""Binding: names resolved against the catalog, types checked, conditions turned into typed trees."""
