"""Patterns of LIKE and regular expressions that mean the same in Java and in RE2, which Arrow uses."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum

from pyspark_delta.expressions.functions.signature import Site
from pyspark_delta.expressions.functions.text import escaped
from pyspark_delta.expressions.literals import NotExactError


class Pattern(Enum):
    """Wildcards of LIKE, as patterns of RE2."""

    ONE = "."
    MANY = ".*"


def like_pattern(pattern: str, escape: str, site: Site | None) -> list[str | Pattern]:
    """Return the texts and wildcards of a pattern of LIKE. Raises NotExactError for one that Spark refuses."""
    parts: list[str | Pattern] = [""]
    characters = iter(pattern)
    for character in characters:
        if character == escape:
            following = next(characters, "")
            if following not in ("_", "%", escape) or not following:
                raise _refused(site, "a pattern that escapes other characters than _ and %")
            parts.append(following)
        elif character in "_%":
            parts.append(Pattern.ONE if character == "_" else Pattern.MANY)
        else:
            parts.append(character)
    return parts


@dataclass(frozen=True, slots=True)
class Read:
    """A regular expression for RE2, with what limits its use."""

    text: str
    groups: int
    may_be_empty: bool
    has_end: bool


_LINE_END = r"(?:\r\n|[\n\r\x{85}\x{2028}\x{2029}])?\z"
_ANY = r"[^\n\r\x{85}\x{2028}\x{2029}]"
_CLASSES = {"d": "0-9", "w": "a-zA-Z_0-9", "s": r"\t\n\x0b\f\r "}
_SPACES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_QUANTIFIER = re.compile(r"[*+?]|\{(\d{1,3})(,(\d{0,3}))?\}")


def read_pattern(pattern: str, site: Site | None, named: int | None = None) -> Read:
    """Return a regular expression for RE2, with the group of number `named` as its only group with a name.

    Raises NotExactError for parts whose meaning differs, or may differ, between Java and RE2.
    """
    reader = _Reader(pattern, site, named)
    text, may_be_empty = reader.alternatives()
    if reader.at < len(pattern):
        raise reader.refused()
    if named == 0:
        text = f"(?P<found>{text})"
    return Read(text, reader.groups, may_be_empty, reader.has_end)


class _Reader:
    """Reads a regular expression of Java from left to right."""

    def __init__(self, pattern: str, site: Site | None, named: int | None) -> None:
        self.pattern, self.site, self.named = pattern, site, named
        self.at, self.groups, self.has_end = 0, 0, False

    def refused(self) -> NotExactError:
        return _refused(self.site, f"the pattern {self.pattern!r}, which may mean something else in Arrow,")

    def next(self) -> str:
        return self.pattern[self.at : self.at + 1]

    def alternatives(self) -> tuple[str, bool]:
        """Read `a|b|c`; return the pattern, and whether it may match the empty string."""
        texts, empty = [], False
        while True:
            text, may_be_empty = self.sequence()
            texts.append(text)
            empty = empty or may_be_empty
            if self.next() != "|":
                return "|".join(texts), empty
            self.at += 1

    def sequence(self) -> tuple[str, bool]:
        texts, empty = [], True
        while self.next() and self.next() not in "|)":
            text, may_be_empty, can_repeat = self.atom()
            quantifier = _QUANTIFIER.match(self.pattern, self.at)
            if quantifier is not None:
                if not can_repeat or may_be_empty:
                    raise self.refused()
                self.at = quantifier.end()
                mark = quantifier.group()
                may_be_empty = mark in "*?" or mark.startswith("{0")
                if self.next() == "?":
                    mark, self.at = f"{mark}?", self.at + 1
                if self.next() and self.next() in "+*?{":
                    raise self.refused()
                text += mark
            texts.append(text)
            empty = empty and may_be_empty
        return "".join(texts), empty

    def atom(self) -> tuple[str, bool, bool]:
        """Read one element; return its pattern, whether it may be empty, and whether it may be repeated."""
        character = self.next()
        self.at += 1
        match character:
            case "(":
                return self.group()
            case "[":
                return self.characters(), False, True
            case ".":
                return _ANY, False, True
            case "^":
                return r"\A", True, False
            case "$":
                if self.at < len(self.pattern):
                    raise self.refused()
                self.has_end = True
                return _LINE_END, True, False
            case "\\":
                inside = self.escape()
                return (f"[{inside}]" if len(inside) > 1 else inside), False, True
            case "*" | "+" | "?" | "{" | "}" | "]":
                raise self.refused()
        return escaped(character), False, True

    def group(self) -> tuple[str, bool, bool]:
        opening = "(?:"
        if self.pattern.startswith("?:", self.at):
            self.at += 2
        elif self.next() == "?":
            raise self.refused()
        else:
            self.groups += 1
            opening = "(" if self.named is None else f"(?P<g{self.groups}>" if self.groups == self.named else "(?:"
        text, may_be_empty = self.alternatives()
        if self.next() != ")":
            raise self.refused()
        self.at += 1
        return f"{opening}{text})", may_be_empty, True

    def escape(self) -> str:
        """Read what follows a backslash; return the inside of a class."""
        character = self.next()
        self.at += 1
        if character in _CLASSES and character:
            return _CLASSES[character]
        if character in _SPACES and character:
            return escaped(_SPACES[character])
        if not character or character.isalnum() or not character.isascii():
            raise self.refused()
        return escaped(character)

    def characters(self) -> str:
        """Read a class of characters with ranges and escapes."""
        text = "["
        if self.next() == "^":
            text, self.at = "[^", self.at + 1
        if self.next() == "]":
            raise self.refused()
        while self.next() != "]":
            character = self.next()
            self.at += 1
            if not character or character in "[&^":
                raise self.refused()
            if character == "\\":
                text += self.escape()
            elif character == "-":
                is_edge = text in ("[", "[^") or self.next() == "]"
                if not is_edge:
                    raise self.refused()
                text += r"\-"
            elif self.next() == "-" and self.pattern[self.at + 1 : self.at + 2] not in ("]", ""):
                last = self.pattern[self.at + 1]
                self.at += 2
                if last in "[\\&" or last < character:
                    raise self.refused()
                text += f"{escaped(character)}-{escaped(last)}"
            else:
                text += escaped(character)
        self.at += 1
        return f"{text}]"


def read_replacement(text: str, groups: int, site: Site | None) -> str:
    """Return a replacement of Java for RE2: `$1` is a group."""
    found = []
    at = 0
    while at < len(text):
        character = text[at]
        if character == "\\":
            raise _refused(site, "a replacement with a backslash")
        if character == "$":
            digits = re.match(r"\d", text[at + 1 :])
            if digits is None or int(digits.group()) > groups or re.match(r"\d\d", text[at + 1 :]):
                raise _refused(site, "this replacement")
            found.append(rf"\{digits.group()}")
            at += 1
        else:
            found.append(character)
        at += 1
    return "".join(found)


def _refused(site: Site | None, what: str) -> NotExactError:
    return NotExactError(what) if site is None else site.refusal(what)
