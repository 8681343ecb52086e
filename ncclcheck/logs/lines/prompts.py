"""How the prompt of a shell looks, in parts of regular expressions that the readers put together.

`(env) [ann@gpu07 run]$ `, `ann@gpu07:~/run$ `, `gpu07# `, `$ `: what stands before a command that a person typed.
Who asks for a command, a host or the end of a line needs different parts, so none of them is a whole pattern.
"""

from __future__ import annotations

ENVIRONMENT = r"(?:\([\w.-]{1,40}\) ?)?"  # of conda or venv, before the prompt
BRACKETED = r"\[[^\]\n]{3,120}\] ?"  # [ann@gpu07 run]
AT_HOST = r"[\w.-]{1,32}@[\w.-]{1,253}[^#$%>\n]{0,120}"  # ann@gpu07:~/run
SIGNS = "[#$%]"  # behind a name; alone, they begin a comment or stand behind a number as well
