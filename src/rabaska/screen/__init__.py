"""The full-screen view of `rabaska watch`, drawn by Textual; the only room that imports it."""
