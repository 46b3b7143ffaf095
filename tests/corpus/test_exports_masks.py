"""What `--mask pii` replaces, what it leaves, and that no text takes it long."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from export_samples import slack, write
from rejoinder.corpus.export_options import mask_pii
from rejoinder.corpus.extract import extract
from rejoinder.corpus.writer import open_pairs


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("ann.b+c@mail.example.co.uk, Ann", "[email], Ann"),
        ("jürgen@müller.de", "[email]"),
        ("Cheers,\nAnn\nann at example.org\n--", "Cheers,\nAnn\n[email]\n--"),
        ("Ann Lee <ann at example.org>, (bob_4 at example.org)", "Ann Lee <[email]>, ([email])"),
        ("ann.lee (at) example.org", "[email]"),
        ("Tel. 01.41.27.66.45, fax 041- 661 17 19", "Tel. [phone], fax [phone]"),
        ("+1 (415) 555-2671", "[phone]"),
        ("call 415-555-2671.", "call [phone]."),
        ("0171/2345678 or (030) 901820", "[phone] or [phone]"),
        ("GB82 WEST 1234 5698 7654 32", "[iban]"),
        ("de89370400440532013000", "[iban]"),
        ("4111 1111 1111 1111", "[card]"),
        ("5500-0055-5555-5559", "[card]"),
        ("3782 822463 10005 and 378282246310005", "[card] and [card]"),
        ("host 192.168.0.12:80", "host [ip]:80"),
        ("2001:db8:85a3:0:0:8a2e:370:7334", "[ip]"),
        ("postgres://bob:hunter2@db.example.org/x", "postgres://[login]@db.example.org/x"),
        ("ghp_" + "a1B2" * 9, "[key]"),
        ("AKIAIOSFODNN7EXAMPLE", "[key]"),
        ("xoxb-123456789012-abcdef", "[key]"),
        ("sha d41d8cd98f00b204e9800998ecf8427e", "sha [key]"),
        ("-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----", "[key]"),
    ],
)
def test_what_has_a_form_is_masked(text, masked):
    assert mask_pii(text) == masked


@pytest.mark.parametrize(
    "text",
    [
        "version 1.2.3.4567 of 2024-03-01 10:15:30",
        "order 20240301-17, 1,234,567.89 EUR, 3.14159265358979",
        "4111 1111 1111 1112",
        "GB82 WEST 1234 5698 7654 33",
        "ids 1709280100.000200 and 12345678",
        "a@b, @ann, me@home",
        "Look at example.org, or #help at irc.example.org; it is on-topic at example.org.",
        "built on 01.02.2006, linux-image-2.6.8.1-3-amd64",
        "1176902 2007-01-06 08:32",
        "00:1b:63:84:45:e6",
        "std::vector and a::b::c",
        "https://example.org/a/2024/03/01/12345678",
    ],
)
def test_other_numbers_and_marks_stay(text):
    assert mask_pii(text) == text


@given(st.text() | st.text("0123456789 -+()./:@abcdefABCDEF_", max_size=300))
def test_masking_twice_changes_no_more(text):
    assert mask_pii(mask_pii(text)) == mask_pii(text)


@pytest.mark.parametrize(
    "text", ["1-" * 200_000, "a:" * 200_000, "a." * 200_000, "(1) " * 100_000, "a.1" * 99_999]
)
def test_long_texts_take_no_long_time(text):
    mask_pii(text)  # would not end if the time were quadratic


def test_pairs_of_an_export_are_masked(tmp_path):
    rows = slack.FILES["help/2024-03-01.json"]
    mail = {**rows[3], "text": "Yes, ask ann@example.org", "ts": "1709280250.000300"}
    files = {**slack.FILES, "help/2024-03-01.json": [*rows, mail]}
    write(files, tmp_path / "slack")
    extract(tmp_path / "slack", tmp_path / "pairs", rules="none", mask="pii")
    replies = open_pairs(tmp_path / "pairs").frame("train", ["response"])["response"].to_list()
    assert "Yes, ask [email]" in replies
