"""Pages: the views as HTML, in a file or in a browser."""
