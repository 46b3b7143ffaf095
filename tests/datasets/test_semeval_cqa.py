"""Community questions in the official XML, made up: repeated queries, empty bodies."""

import numpy as np
import pytest

from rejoinder.datasets.semeval import read_cqa
from rejoinder.errors import InputError
from rejoinder.evaluation.encoding import Embedder
from rejoinder.evaluation.tasks.ranking import score_questions

HEAD = '<?xml version="1.0" encoding="utf-8"?>\r\n<xml version="1.0">\r\n'
QUESTION = """<OrgQuestion ORGQ_ID="{query}"><OrgQSubject>{subject}</OrgQSubject>
<OrgQBody>{body}</OrgQBody><Thread THREAD_SEQUENCE="{query}_R{rank}">
<RelQuestion RELQ_ID="{query}_R{rank}" RELQ_RANKING_ORDER="{rank}" RELQ_RELEVANCE2ORGQ="{label}">
<RelQSubject>{related}</RelQSubject><RelQBody></RelQBody></RelQuestion>
<RelComment RELC_ID="x"><RelCText>a comment</RelCText></RelComment></Thread></OrgQuestion>\r\n"""
ROWS = [
    ("Q1", 2, "cheap   bank", "which &amp; where", "Irrelevant", "nice beach"),
    ("Q1", 5, "cheap   bank", "which &amp; where", "PerfectMatch", "cheap bank"),
    ("Q2", 1, "visa", "", "Relevant", "visa for wife"),
    ("Q2", 3, "visa", "", "Irrelevant", "good school"),
]


def write(folder, label="{}", name="SemEval2017-task3-English-test-input.xml"):
    folder.mkdir(parents=True, exist_ok=True)
    body = "".join(
        QUESTION.format(query=query, rank=rank, subject=subject, body=text,
                        label=label.format(judged), related=related)
        for query, rank, subject, text, judged, related in ROWS
    )  # fmt: skip
    (folder / name).write_bytes((HEAD + body + "</xml>\r\n").encode())


def test_questions_and_gold_of_the_xml(tmp_path):
    write(tmp_path / "cqa")
    questions = read_cqa(tmp_path, "2017", "test")
    assert [query.original.id for query in questions.queries] == ["Q1", "Q2"]
    first = questions.queries[0]
    assert first.original.text() == "cheap bank which & where"
    assert first.original.text("subject") == "cheap bank"
    assert questions.queries[1].original.text("body") == ""
    assert first.ranks.tolist() == [2, 5]
    assert first.relevant.tolist() == [False, True]
    assert [one.comments for one in first.related] == [["a comment"], ["a comment"]]
    assert first.original.comments == []


def test_gold_of_a_relevancy_file_where_the_xml_has_none(tmp_path):
    write(tmp_path, label="?")
    with pytest.raises(InputError, match=r"question Q1_R2 .*'\?'.*relevancy"):
        read_cqa(tmp_path, "2017", "test")
    gold = [f"{q}\t{q}_R{rank}\t{rank}\t0.5\t{str(rank == 1).lower()}" for q, rank, *_ in ROWS]
    place = tmp_path / "SemEval2017-Task3-CQA-QL-test.xml.subtaskB.relevancy"
    place.write_text("\n".join(gold) + "\n")
    queries = read_cqa(tmp_path, "2017", "test").queries
    assert [query.relevant.tolist() for query in queries] == [[False, False], [True, False]]
    place.write_text("Q1 Q1_R2 2 yes\n")
    with pytest.raises(InputError, match="line 1"):
        read_cqa(tmp_path, "2017", "test")


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("Q1\tQ1_R2\t2\t0.5\ttrue", "Q1_R2 .*'Irrelevant'.* true"),
        ("Q9\tQ9_R1\t1\t0.5\ttrue", "lacks 1 questions .*'Q9_R1'"),
    ],
)
def test_gold_that_does_not_belong_to_the_xml_is_refused(tmp_path, line, said):
    write(tmp_path)
    gold = [
        f"{query}\t{query}_R{rank}\t{rank}\t0.5\t{str(label != 'Irrelevant').lower()}"
        for query, rank, _, _, label, _ in ROWS
    ]
    place = tmp_path / "SemEval2017-Task3-CQA-QL-test.xml.subtaskB.relevancy"
    place.write_text("\n".join(gold) + "\n")
    assert read_cqa(tmp_path, "2017", "test").queries[0].relevant.tolist() == [False, True]
    others = [row for row in gold if row.split("\t")[1] != line.split("\t")[1]]
    place.write_text("\n".join([*others, line]) + "\n")
    with pytest.raises(InputError, match=said):
        read_cqa(tmp_path, "2017", "test")


def test_damage_is_named(tmp_path):
    write(tmp_path)
    path = tmp_path / "SemEval2017-task3-English-test-input.xml"
    path.write_bytes(path.read_bytes()[:300])
    with pytest.raises(InputError, match="damaged or not XML"):
        read_cqa(tmp_path, "2017", "test")
    with pytest.raises(InputError, match="looked for"):
        read_cqa(tmp_path, "2016", "dev")


class Letters:
    def encode(self, sentences):
        return np.array([[text.count(c) for c in "abcdefinw"] for text in sentences], np.float32)


def test_the_task_ranks_by_the_text_asked_for(tmp_path):
    write(tmp_path)
    questions = read_cqa(tmp_path, "2017", "test")
    subject = score_questions(Embedder(Letters()), questions, "cqa-b/2017", "subject")
    assert subject.scores["map"] == 100
    assert subject.groups["search engine's order"].scores["map"] == 75
    body = score_questions(Embedder(Letters()), questions, "cqa-b/2017", "body")
    assert body.scores["map"] == 75  # related bodies are empty: all alike, the file's order
    with pytest.raises(InputError, match="one of both, subject, body"):
        score_questions(Embedder(Letters()), questions, "cqa-b/2017", "title")
