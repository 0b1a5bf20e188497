"""A local web app: place control domains with the mouse, type targets, watch the anatomy come."""
