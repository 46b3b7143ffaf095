"""Which words are read as others, and which are right.

Known words that unknown ones are misspellings of.
"""

import pickle
from itertools import product

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rejoinder import registry
from rejoinder.models.find import shipped_model
from rejoinder.models.folder import read_model
from rejoinder.registry import kernel
from rejoinder.text.features import WordFeatures
from rejoinder.text.readings import Spelling
from rejoinder.text.vocabulary import Vocabulary

NAMES = """
Loach Mosul Quito Reuters IAEA Skoda Splunk Revolut Opel Lada Tata Scania Vespa Lodz Brno Tirana
Minsk Cusco Recife Homs Hama Erbil Basra Sanaa Aden Doha Manama Kano Lome Dakar Lusaka Ceylan Cilic
Thiem Halep Kerber Salah Kante Neuer Boateng Pham Hoang Minh Linh Thuy Joao Rafaela Mariana Kenji
Naoki Ambien Crestor Numpy Solus Qubes Oppo Vivo Garmin Razer Sonos Jabra Anker Splatoon Zara
Primark Aldi Asda Kroger Wizz Iberia Cathay Sauron Thorin Smaug Macron Meloni Orban Duda Fico
Swindon Luton Crewe Mahfouz Capek Bernhard Handke Oromo Wolof Udon Soba Satay Dosa Idli Sambar
Zypper Journald Firestore Nuxt Gitea Kubernetes Grafana Zabbix
"""
MISSPELT = """
accomodate accommodate acheive achieve accross across agressive aggressive apparantly apparently
arguement argument basicly basically begining beginning beleive believe bizzare bizarre
buisness business calender calendar cemetary cemetery comming coming completly completely
definately definitely dissapear disappear embarass embarrass enviroment environment
existance existence familar familiar finaly finally foriegn foreign freind friend
goverment government happend happened immediatly immediately independant independent
knowlege knowledge millenium millennium neccessary necessary noticable noticeable
ocassion occasion occured occurred peice piece prefered preferred publically publicly
realy really recieve receive religous religious rember remember seperate separate
succesful successful suprise surprise tommorow tomorrow truely truly untill until
wierd weird wich which teh the thier their becuase because adress address didnt didn't
dont don't grammer grammar reccomend recommend rythm rhythm strenght strength vaccum vacuum
writting writing excercise exercise probaly probably restaraunt restaurant
"""


@pytest.fixture(scope="module")
def features() -> WordFeatures:
    found = read_model(shipped_model()).features
    assert isinstance(found, WordFeatures)
    assert found.spelling == "likely"
    return found


def words_of(features: WordFeatures, text: str) -> list[str]:
    """What each word is read as: a known word, `word?` where it may be one, or `-`."""
    words, [ids] = features.vocabulary.words, [features.word_ids.read([text])[0].ids.tolist()]
    return [words[one] if one >= 0 else "-" if one == -1 else f"{words[-2 - one]}?" for one in ids]


@pytest.mark.parametrize("frame", ["{}", "we met {} there"])
@pytest.mark.parametrize("form", [str, str.lower])
def test_names_are_not_read_as_words(features, form, frame):
    names = NAMES.split()
    texts = [frame.format(form(name)) for name in names]
    index = features.vocabulary.index
    others = [
        name
        for name, text in zip(names, texts, strict=True)
        if name.lower() not in index and "-" not in words_of(features, text)
    ]
    assert len(others) <= 0.05 * len(names), others


def test_common_misspellings_stand_for_their_words(features):
    words = MISSPELT.split()
    pairs = list(zip(words[::2], words[1::2], strict=True))
    wrong = [pair for pair in pairs if words_of(features, pair[0]) != words_of(features, pair[1])]
    assert len(pairs) == 64
    assert len(wrong) <= 9, wrong


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("my pasword", "password"),
        ("Pasword", "password"),  # phones begin with a capital
        ("PLEASE RESET MY PASWORD", "password"),
        ("How Do I Reset My Pasword", "password"),  # a title
        ("we told Pasword", "-"),
        ("they call it PASWORD there", "-"),
        ("use my_pasword", "-"),
        ("see pasword.txt", "-"),
        ("call pasword()", "-"),
        ("version pasword2", "-"),
        ("ask #pasword", "-"),
        ("is it my pasword.", "password"),
    ],
)
def test_how_a_word_stands_tells_whether_it_is_right(features, text, expected):
    assert expected in words_of(features, text)
    assert ("password" in words_of(features, text)) == (expected == "password")


def test_words_of_another_language_stay(features):
    german = "Ich habe gestern meine Schuhe verloren und suche jetzt neue Schuhe"
    assert {*words_of(features, german)} <= {*german.lower().split(), "-"}


def test_a_word_that_the_text_has_again_or_next_to_the_known_one_is_less_likely_an_error(features):
    assert words_of(features, "my passwort is lost")[1] == "password"
    again = words_of(features, "my passwort is the passwort that was lost")
    assert (again[1], again[4]) == ("password?", "password?")
    assert words_of(features, "my passwort is not a password")[1] == "password?"


@pytest.mark.parametrize(
    ("parted", "whole"),
    [
        ("I do n't know", "I don't know"),
        ("they ca n't and wo n't", "they can't and won't"),
        ("it 's what you 're told", "it's what you're told"),
        ("it can\u00b4t be", "it can't be"),
        ("it don`t matter", "it don't matter"),
        ("n't", "n't"),
        ("he said 's'", "he said 's'"),
    ],
)
def test_words_that_old_corpora_part_are_one(features, parted, whole):
    assert features([parted]).ids.tolist() == features([whole]).ids.tolist()
    together = features([parted, "how", parted])
    assert [row.tolist() for row in (together[0], together[1])] == [
        features([whole]).ids.tolist(), features(["how"]).ids.tolist()
    ]  # fmt: skip


def test_a_word_that_may_be_either_has_both_rows(features):
    """The known word's, and those of its letters."""
    [word] = words_of(features, "zypper")
    assert word == "zipper?"
    ids = features(["zypper"]).ids.tolist()
    assert ids[0] == features.vocabulary.index["zipper"]
    assert all(one >= len(features.vocabulary) for one in ids[1:])
    assert len(ids) > 2
    assert features.known(["zypper"]).ids.tolist() == ids[:1]


def test_readings_survive_a_copy_into_another_process(features):
    again = pickle.loads(pickle.dumps(features.word_ids))  # noqa: S301
    texts = ["my pasword of Loach, do n't"]
    assert again(texts).ids.tolist() == features.word_ids(texts).ids.tolist()


WORDS = ("do", "don't", "don", "'", "t", "n't", "it", "it's", "s", "password", "weather", "until",
         "the", "teh", ".", "where", "untill")  # fmt: skip


@pytest.fixture(scope="module")
def both_ways() -> list[WordFeatures]:
    made = []
    for left_out in (False, True):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(registry, "WITHOUT_KERNELS", left_out)
            features = WordFeatures(Vocabulary(WORDS), letter_buckets=8, spelling="likely")
            assert features.word_ids.way == ("python" if left_out else "native")
            made.append(features)
    return made


pieces = st.sampled_from([
    "pasword", "Pasword", "PASWORD", "wheather", "teh", "untill", "do n't", "it 's", "don`t",
    "can\u00b4t", "\u00c9tat", "Stra\u00dfe", "\u0130", "Where", "zyxxyq", "xqzz", "2", "_", ".",
    ",", "(", "()", "@", "\u2019", "\u4e2d", "e\u0301", "\n", "-", ". ",
])  # fmt: skip


@pytest.mark.skipif(kernel("text._words") is None, reason="the kernel is not built")
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.lists(st.lists(st.tuples(pieces, st.sampled_from(["", " "])), max_size=12), max_size=3))
def test_the_kernel_reads_as_python_does(both_ways, rows):
    texts = ["".join(piece + space for piece, space in row) for row in rows]
    (one, words, _), (other, others, _) = (ways.word_ids.read(texts) for ways in both_ways)
    assert words == others
    assert np.array_equal(one.ids, other.ids)
    assert np.array_equal(one.offsets, other.offsets)


KNOWN = (
    "password",
    "weather",
    "whether",
    "don't",
    "Straße".lower(),
    "\u0441\u043b\u043e\u0432\u043e",
    "the",
    "2017",
    "form",
)


def meant(word: str, known: tuple[str, ...] = KNOWN) -> str | None:
    found = int(Spelling(known)([word])[0])
    return None if found < 0 else known[found]


@pytest.mark.parametrize(
    ("word", "right"),
    [
        ("pasword", "password"),
        ("passsword", "password"),
        ("passwrod", "password"),
        ("psasword", "password"),
        ("password\u00e4", "password"),
        ("apssword", "password"),
        ("asswrod", None),
        ("passwod", "password"),
        ("paxxword", None),
        ("wether", "weather"),
        ("do'nt", "don't"),
        ("stra\u00dfee", "stra\u00dfe"),
        ("\u0441\u043b\u043e\u0432", "\u0441\u043b\u043e\u0432\u043e"),
        ("hte", None),
        ("thee", None),
        ("2071", None),
        ("20017", None),
        ("frm", None),
        ("from", "form"),
        ("", None),
        ("p" * 1_000, None),
    ],
)
def test_a_word_with_one_error_stands_for_the_right_one(word, right):
    assert meant(word) == right


def one_error_apart(word: str, other: str) -> bool:
    """The definition: one letter dropped, added or another, or two neighbours swapped."""
    if len(word) == len(other):
        differ = [at for at, (a, b) in enumerate(zip(word, other, strict=True)) if a != b]
        if len(differ) == 2 and differ[1] == differ[0] + 1:
            return word[differ[0]] == other[differ[1]] and word[differ[1]] == other[differ[0]]
        return len(differ) == 1
    short, long = sorted((word, other), key=len)
    return len(long) == len(short) + 1 and any(
        long[:at] + long[at + 1 :] == short for at in range(len(long))
    )


words = st.text(alphabet="abc", min_size=4, max_size=6)


@given(st.lists(words, min_size=1, unique=True), st.lists(words))
def test_exactly_words_with_one_error_are_found(known, asked):
    spelling = Spelling(tuple(known))
    asked = [word for word in asked if word not in known]
    for word, found in zip(asked, spelling(asked).tolist(), strict=True):
        near = [other for other in known if one_error_apart(word, other)]
        assert (known[found] in near) if near else found == -1
        assert spelling([word]).tolist() == [found]


def test_the_more_frequent_word_counts_if_the_errors_are_as_likely():
    assert meant("wrds", ("words", "wards")) == "words"
    assert meant("wrds", ("wards", "words")) == "wards"


def test_a_slip_to_the_neighbouring_key_is_likelier_than_another_letter():
    assert meant("tgank", ("thank", "tzank")) == meant("tgank", ("tzank", "thank")) == "thank"


def test_many_words_are_found_at_once():
    known = tuple("".join(letters) * 2 for letters in product("abcdefghij", repeat=4))
    asked = [word[:3] + word[4:] for word in known]
    found = Spelling(known)(asked)
    assert found.dtype == np.int32
    assert (found >= 0).all()


def test_without_known_words_none_is_found():
    assert Spelling(())(["password"]).tolist() == [-1]
    assert Spelling(("a",))([]).tolist() == []


def test_words_are_found_after_those_that_were_kept_have_gone(monkeypatch):
    monkeypatch.setattr("rejoinder.text.vocabulary._REMEMBERED", 1)
    features = WordFeatures(Vocabulary(("the",)), unknown_buckets=5, spelling="likely")
    texts = ["rust zigs", "rust code"]
    expected = [
        WordFeatures(Vocabulary(("the",)), unknown_buckets=5, spelling="likely")([text])[0].tolist()
        for text in texts
    ]
    assert [features([text])[0].tolist() for text in texts] == expected
