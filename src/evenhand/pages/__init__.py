"""What people look at: values of the rooms below as HTML, for the server's pages, the report that
is one file, and notebooks. No HTTP and no statistics live here."""
