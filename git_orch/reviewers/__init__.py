"""Those who read a tree and answer: the built-in `static`, and the programs that a person has named."""
