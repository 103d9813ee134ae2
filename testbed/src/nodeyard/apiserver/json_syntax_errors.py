"""JSON syntax errors as Go's parser reports them.

It runs only after the fast parser has failed, and walks the text byte by byte to the first invalid one.
"""

from __future__ import annotations

from nodeyard.kube.goformat import quote

_SPACE = b" \t\r\n"
_DIGITS = b"0123456789"
_HEX = b"0123456789abcdefABCDEF"
_LITERALS = {ord(word[:1]): word for word in (b"true", b"false", b"null")}
_DEPTH_MAX = 10_000
_END = "unexpected end of JSON input"


class _FaultError(Exception):
    """A syntax error; ends the walk."""


def fault(text: bytes) -> str | None:
    """Return the error, or None if Go accepts the text."""
    try:
        _Scanner(text).document()
    except _FaultError as found:
        return str(found)
    return None


class _Scanner:
    def __init__(self, text: bytes) -> None:
        self._text = text + b" "
        self._length = len(text)
        self._at = 0
        self._open = bytearray()

    def document(self) -> None:
        """Scan values and separators without recursion, because nesting may be deep."""
        while True:
            if self._value():
                continue
            while self._open:
                if self._between():
                    break
            else:
                break
        self._skip()
        if self._at < self._length:
            raise self._invalid("after top-level value")

    def _value(self) -> bool:
        """Scan the beginning of a value; return whether a value must follow inside it."""
        byte = self._next()
        if byte in b"{[":
            return self._enter(byte)
        if byte == ord('"'):
            self._string()
        elif byte in _LITERALS:
            self._literal(_LITERALS[byte])
        elif byte == ord("-") or byte in _DIGITS:
            self._number(byte)
        else:
            raise self._invalid("looking for beginning of value", back=1)
        return False

    def _enter(self, byte: int) -> bool:
        if len(self._open) >= _DEPTH_MAX:
            raise self._invalid("exceeded max depth", back=1)
        self._open.append(byte)
        self._skip()
        closing = b"}" if byte == ord("{") else b"]"
        if self._peek() == closing:
            self._at += 1
            self._open.pop()
            return False
        if byte == ord("{"):
            self._key()
        return True

    def _key(self) -> None:
        if self._next() != ord('"'):
            raise self._invalid("looking for beginning of object key string", back=1)
        self._string()
        if self._next() != ord(":"):
            raise self._invalid("after object key", back=1)

    def _between(self) -> bool:
        """Scan the separator or end after a value; return whether another value follows."""
        is_object = self._open[-1] == ord("{")
        byte = self._next()
        if byte == ord(","):
            if is_object:
                self._key()
            return True
        if byte != ord("}" if is_object else "]"):
            raise self._invalid("after object key:value pair" if is_object else "after array element", back=1)
        self._open.pop()
        return False

    def _string(self) -> None:
        while (byte := self._byte()) != ord('"'):
            if byte < 0x20:
                raise self._invalid("in string literal", back=1)
            if byte == ord("\\"):
                self._escape()

    def _escape(self) -> None:
        byte = self._inside()
        if byte == ord("u"):
            for _ in range(4):
                if self._inside() not in _HEX:
                    raise self._invalid("in \\u hexadecimal character escape", back=1)
        elif byte not in b'bfnrt\\/"':
            raise self._invalid("in string escape code", back=1)

    def _literal(self, word: bytes) -> None:
        for expected in word[1:]:
            if self._inside() != expected:
                raise self._invalid(f"in literal {word.decode()} (expecting {_shown(expected)})", back=1)

    def _number(self, byte: int) -> None:
        if byte == ord("-"):
            byte = self._inside()
            if byte not in _DIGITS:
                raise self._invalid("in numeric literal", back=1)
        if byte != ord("0"):
            self._digits()
        if self._peek() == b".":
            self._at += 1
            self._some_digits("after decimal point in numeric literal")
        if self._peek() in (b"e", b"E"):
            self._at += 1
            if self._peek() in (b"+", b"-"):
                self._at += 1
            self._some_digits("in exponent of numeric literal")

    def _some_digits(self, where: str) -> None:
        if self._inside() not in _DIGITS:
            raise self._invalid(where, back=1)
        self._digits()

    def _digits(self) -> None:
        while self._text[self._at] in _DIGITS:
            self._at += 1

    # reading

    def _peek(self) -> bytes:
        return self._text[self._at : self._at + 1]

    def _skip(self) -> None:
        while self._at < self._length and self._text[self._at] in _SPACE:
            self._at += 1

    def _next(self) -> int:
        """Return the next byte that is no white space."""
        self._skip()
        return self._byte()

    def _byte(self) -> int:
        if self._at >= self._length:
            raise _FaultError(_END)
        return self._inside()

    def _inside(self) -> int:
        """Return the next byte of a token. At the end it is a space, as in Go, which is never part of a token."""
        self._at += 1
        return self._text[self._at - 1]

    def _invalid(self, where: str, back: int = 0) -> _FaultError:
        return _FaultError(f"invalid character {_shown(self._text[self._at - back])} {where}")


def _shown(byte: int) -> str:
    """The byte as a character in single quotes."""
    if byte == ord("'"):
        return "'\\''"
    return "'\"'" if byte == ord('"') else f"'{quote(chr(byte))[1:-1]}'"
