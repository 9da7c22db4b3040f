"""Interactive charts of answers and evaluations, as pages, pictures, notebook output and GeoJSON.

One Vega-Lite specification serves all of them. Altair and vl-convert are the extra `plot`; they are imported when a
chart is drawn. Nothing here needs Spark.
"""

from anabranch.plotting.dispatch import plot
from anabranch.plotting.geojson import to_geojson

__all__ = ["plot", "to_geojson"]
