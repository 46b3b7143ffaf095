"""What lines of logs and of chats say beyond their words."""


def test_who_is_named_first_is_answered(read):
    log = (
        "[2024-03-01 10:00:00] <ann> Which port?\n"
        "[2024-03-01 10:01:00] <eve> hello\n"
        "[2024-03-01 10:02:00] <bob> ann: 8000\n"
        "[2024-03-01 12:00:00] <bob> ann: or 8080\n"
    )
    found = read("irc", {"#help.log": log})
    assert [(one.author, one.parent) for one in found] == [
        ("ann", None),
        ("eve", None),
        ("bob", found[0].id),
        ("bob", None),
    ]
    assert {one.source for one in found} == {"#help"}


def test_the_order_of_a_date_follows_from_all_dates_of_a_chat(read):
    def time_of(dates: list[str]) -> float:
        chat = "".join(f"{date}, 10:00 - Ann: Hi\n" for date in dates)
        found = read("whatsapp", {"chat.txt": chat})
        return float(found[0].time)

    assert time_of(["02/03/24", "13/03/24"]) == 1_709_373_600  # 2 March
    assert time_of(["02/03/24", "02/13/24", "02/14/24"]) == 1_706_954_400  # 3 February


def test_what_whatsapp_writes_for_a_call_is_no_text_and_a_name_has_no_tilde(read):
    chat = (
        "01.03.24, 10:11 - ~\u202fJonas: Kommst du heute?\n"
        "01.03.24, 10:12 - Jonas: Verpasster Sprachanruf\n"
        "01.03.24, 10:12 - Mia: null\n"
        "01.03.24, 10:13 - Mia: Ja, um acht. <Diese Nachricht wurde bearbeitet.>\n"
        "01.03.24, 10:14 - Mia: a <b> c <d>\n"
    )
    found = read("whatsapp", {"chat.txt": chat})
    assert [(one.author, one.text, one.edited) for one in found] == [
        ("Jonas", "Kommst du heute?", False),
        ("Jonas", "", False),
        ("Mia", "", False),
        ("Mia", "Ja, um acht.", True),
        ("Mia", "a <b> c <d>", False),
    ]


def test_a_day_that_no_month_has_is_told(read):
    log = "10:00 <ann> Hi\n--- Day changed Fri Feb 30 2024\n10:01 <bob> Hello\n"
    first, malformed, second = read("irc", {"#rust.log": log})
    assert (malformed.line, first.text, second.text) == (2, "Hi", "Hello")
