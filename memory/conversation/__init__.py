"""One turn, in the order it happens: received, put to the model, answered, recorded, analysed; then a slice closes.

This package joins the folder (`memory.folder`) and the model (`memory.llm`). It knows nothing of the web: people,
clocks and settings come in as arguments, and what a person is to read goes out as text in their language or as a code.
"""
