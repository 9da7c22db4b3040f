"""A toolkit for SVG pictures: elements, pages, axes and geometry. It knows nothing of answers or queries."""
