"""The built-in reviewer: what can be told about changed files without an agent, a network or the files' own code.

It runs as a child process of its own (`python -I -m git_orch.reviewers.static`, cwd = the tree) and speaks the
request protocol like any other reviewer. Nothing of the tree is imported, run or obeyed: no configuration of it is
read, links are never followed, and a suppression that the difference adds is reported, not honoured.

Start with `review.review`. One module a check: `syntax` with the parsers in `json_text`, `python_text`, `toml_text` and
`yaml_text` (what they can say: `outcomes`), `markers`, `secrets` with `detectors` and `key_blocks`, `hidden`,
`suppressions`, `whitespace`, `modes`, `names`, `sizes`, `links`, `lint`. What they look at is a `source.Source`; which
lines are new, `patch` tells.

Left out on purpose: `bash -n`. It costs a process a file, and its answer depends on the installed bash and on the
`shopt` lines that it does not run (extglob alone makes valid scripts fail), so it could not be relied on to block.
"""
