"""One module a verb: what it does is called from here, what it says is printed from here. Rows below never print."""
