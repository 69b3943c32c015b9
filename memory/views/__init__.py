"""The pages people see. A page and the fragment of it that htmx asks for are one view."""
