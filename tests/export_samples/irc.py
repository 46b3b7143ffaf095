"""Logs of a channel each: one of a bouncer for two days, and those of four clients."""

from rejoinder.exports.base import Message

FILES = {
    "libera/#help/2024-03-01.log": (
        "[22:58:00] *** Joins: ann (~ann@example.org)\n"
        "[22:58:10] <ann> \x02Which\x02 port\x0304,01 does\x03 it take?\n"
        "[22:59:50] <@bob> ann: 8000\n"
    ),
    "libera/#help/2024-03-02.log": (
        "[00:01:00] * ann thanks bob\n"
        "[00:01:01] <carl> Ann: me, too\n"
        "[00:02:00] <***> Buffer Playback...\n"
        "[02:01:02] <carl> ann: still there?\n"
    ),
    "irssi/#night.log": (
        "--- Log opened Fri Mar 01 23:58:00 2024\n"
        "23:58 -!- Irssi: #night: Total of 2 nicks\n"
        "23:59 < ann> Good night\n"
        "--- Day changed Sat Mar 02 2024\n"
        "00:00  * ann sleeps\n"
        "09:10 -ChanServ(ChanServ@services.)- Welcome\n"
    ),
    "weechat/irc.libera.#tabs.weechatlog": (
        "2024-03-01 10:00:00\t-->\tann (~ann@example.org) has joined #tabs\n"
        "2024-03-01 10:00:05\t@bob\tHello\tann\n"
        "2024-03-01 10:00:06\t *\tann waves\n"
    ),
    "hexchat/libera-#stars.log": (
        "**** BEGIN LOGGING AT Sun Dec 31 23:59:00 2023\n\n"
        "Dec 31 23:59:01 *\tNow talking on #stars\n"
        "Dec 31 23:59:02 <ann>\tHappy new year\n"
        "Jan 01 00:00:03 *\tbob has joined\n"
        "Jan 01 00:00:04 -bob-\tSame to you\n"
        "**** ENDING LOGGING AT Mon Jan  1 00:01:00 2024\n"
    ),
    "2024/03/01/ubuntu.txt": (
        "[09:14] <ann> Is it café?\n"
        "=== bob [~bob@example.org]  has joined #ubuntu\n"
        "[02:15pm] <bob> It is\n"
    ).encode("cp1252"),
    "konversation/libera_#long.log": "[Friday 01 March 2024] [10:00:00 CET] <ann>\tlong\n",
    "bot/#zone.log": "2024-03-01T10:00:00+0200  <ann&gt; early\n",
}  # fmt: skip
_DAY = 1709251200.0
"""Midnight of 1 March 2024."""
_NEXT = _DAY + 86_400
_YEAR = 1704067200.0
"""Midnight of 1 January 2024."""


def _said(
    name: str,
    line: int,
    author: str,
    text: str,
    time: float,
    source: str,
    parent: str | None = None,
) -> Message:
    return Message(
        id=f"{name}:{line}",
        text=text,
        parent=parent,
        author=author,
        time=time,
        source=source,
        is_system=not author,
    )


_UBUNTU, _ZONE, _STARS = "2024/03/01/ubuntu.txt", "bot/#zone.log", "hexchat/libera-#stars.log"
_LONG = "konversation/libera_#long.log"
_NIGHT, _TABS = "irssi/#night.log", "weechat/irc.libera.#tabs.weechatlog"
_FIRST, _SECOND = "libera/#help/2024-03-01.log", "libera/#help/2024-03-02.log"
MESSAGES = [
    _said(_UBUNTU, 1, "ann", "Is it café?", _DAY + 33_240, "ubuntu"),
    _said(_UBUNTU, 2, "", "bob [~bob@example.org]  has joined #ubuntu", _DAY + 33_240, "ubuntu"),
    _said(_UBUNTU, 3, "bob", "It is", _DAY + 51_300, "ubuntu"),
    _said(_ZONE, 1, "ann", "early", _DAY + 28_800, "#zone"),
    _said(_STARS, 3, "", "Now talking on #stars", _YEAR - 59, "#stars"),
    _said(_STARS, 4, "ann", "Happy new year", _YEAR - 58, "#stars"),
    _said(_STARS, 5, "", "bob has joined", _YEAR + 3, "#stars"),
    _said(_STARS, 6, "", "Same to you", _YEAR + 4, "#stars"),
    _said(_NIGHT, 2, "", "Irssi: #night: Total of 2 nicks", _DAY + 86_280, "#night"),
    _said(_NIGHT, 3, "ann", "Good night", _DAY + 86_340, "#night"),
    _said(_NIGHT, 5, "ann", "sleeps", _NEXT, "#night"),
    _said(_NIGHT, 6, "", "Welcome", _NEXT + 33_000, "#night"),
    _said(_LONG, 1, "ann", "long", _DAY + 36_000, "#long"),
    _said(_FIRST, 1, "", "Joins: ann (~ann@example.org)", _DAY + 82_680, "#help"),
    _said(_FIRST, 2, "ann", "Which port does it take?", _DAY + 82_690, "#help"),
    _said(_FIRST, 3, "bob", "ann: 8000", _DAY + 82_790, "#help", f"{_FIRST}:2"),
    _said(_SECOND, 1, "ann", "thanks bob", _NEXT + 60, "#help"),
    _said(_SECOND, 2, "carl", "Ann: me, too", _NEXT + 61, "#help", f"{_SECOND}:1"),
    _said(_SECOND, 3, "", "Buffer Playback...", _NEXT + 120, "#help"),
    _said(_SECOND, 4, "carl", "ann: still there?", _NEXT + 7262, "#help"),
    _said(_TABS, 1, "", "ann (~ann@example.org) has joined #tabs", _DAY + 36_000, "#tabs"),
    _said(_TABS, 2, "bob", "Hello\tann", _DAY + 36_005, "#tabs"),
    _said(_TABS, 3, "ann", "waves", _DAY + 36_006, "#tabs"),
]
BROKEN = {_SECOND: f"{FILES[_SECOND]}no clock\n[25:61] <ann> late\n2024-02-31 10:00 <ann> x\n"}
EMPTY = {"#help.log": ""}
REAL = {
    "irc": (5_848, 0, 698, 2_101),
    "irc/ceph_supybot_2012-10-17.log": (98, 0, 47, 16),
    "irc/ubuntu_2004-12-25.train-c.raw.txt": (1_500, 0, 335, 372),
    "irc/ubuntu_2016-06-08_07.raw.txt": (1_500, 0, 64, 547),
}
