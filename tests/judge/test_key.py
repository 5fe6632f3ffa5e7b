"""A server's key: refused if it cannot be sent, and in no file and no message."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from judge_server import KEY, ROOT, as_json, candidates, completion, error
from snakemake.common.configfile import load_configfile

from persistcal.questions.labels import JudgeError
from persistcal.server import client
from persistcal.server.client import redact
from persistcal.server.spending import Access
from study.check import check_config
from study.schema import ConfigError


@pytest.mark.parametrize("key", ["sk-\u200babcdefgh", "sk-abcdef\nhi", "sk-“abcdef”"])
def test_a_key_that_cannot_be_sent_is_refused_before_any_request(fake, key):
    with pytest.raises(JudgeError, match=r"JUDGE_KEY cannot be sent.*character") as error_info:
        fake.ask(candidates(3), api_key=key)
    assert "abcdef" not in str(error_info.value)
    assert (fake.kept, fake.booked) == (0, 0)
    assert fake.ask(candidates(3)) == "RWR"


VISIBLE = st.characters(min_codepoint=33, max_codepoint=126)


@given(
    st.text(VISIBLE, min_size=8, max_size=60),
    *(st.text(), st.text()),
    *(st.integers(0, 60), st.integers(0, 60)),
)
def test_no_piece_of_a_key_is_left(key, prefix, suffix, start, length):
    piece = key[start : start + length]
    redacted = redact(f"{prefix}{piece}{suffix}{key}", key)
    assert not [key[i : i + 8] for i in range(len(key) - 7) if key[i : i + 8] in redacted]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("01234567", "[key]"),  # the whole text is a piece
        ("x12345678", "x[key]"),
        ("12345678x", "[key]x"),
        ("1234567", "1234567"),
        ("x0123456x789abcd", "x0123456x789abcd"),
        ("12345678 9abcdef/", "[key] [key]"),
        ("0123456789abcdef%2F", "[key]"),
        ("0123456789abcdef/9abcdef/", "[key][key]"),
        ("sk-abc…", "[key]…"),
        ("task-1", "task-1"),
    ],
)
def test_pieces_of_eight_characters_of_a_key_are_removed(text, expected):
    assert redact(text, "0123456789abcdef/") == expected


def test_a_key_at_the_end_of_a_shortened_text_is_removed(fake):
    key = "topsecret/0123+456789=abcdefghijk"
    for i, length in enumerate(range(470, 501, 5)):
        fake.replies[candidates(7)[i].answer] = completion("x" * length + key + "y" * 500)
    fake.ask(candidates(7), api_key=key)
    fake.replies["fact 0"] = error(400, "no", "z" * 440 + key.replace("/", "%2F"))
    with pytest.raises(JudgeError) as error_info:
        fake.ask(candidates(1), api_key=key, model="judge-2", retries=1)
    for text in [*fake.written(), str(error_info.value).encode()]:
        for i in range(len(key) - 7):
            assert key[i : i + 8].encode() not in text


def test_a_batch_that_is_named_like_the_key_is_not_written(fake):
    fake.next_batch_replies = [as_json({"id": f"b-{KEY}", "status": "in_progress"})]
    assert fake.ask(candidates(2), backend="openai_batch") == "RW"
    assert not [text for text in fake.written() if b"SECRET" in text]


@pytest.mark.parametrize("address", ["user:hunter22@{}", "{}?key=hunter22", "{}#hunter22"])
def test_a_password_in_the_address_is_refused_and_not_shown(fake, address):
    address = f"http://{address.format('judge.example:8000/v1')}"
    message = r"http://judge.example:8000/v1\) holds a password, query or fragment"
    with pytest.raises(JudgeError, match=message) as error_info:
        fake.ask(candidates(1), base_url=address)
    assert "hunter22" not in str(error_info.value)
    assert (fake.kept, fake.booked) == (0, 0)


@pytest.fixture(scope="module")
def paper_config():
    files = [ROOT / "config" / f"{name}.yaml" for name in ("config", "tables")]
    return load_configfile(files[0]) | load_configfile(files[1])


@pytest.mark.parametrize(
    "address",
    ["http://user:hunter22@h/v1", "https://h/v1?key=hunter22", "https://h/v1#hunter22", 22],
)
def test_a_config_with_a_password_in_an_address_is_refused_and_not_shown(paper_config, address):
    config = {**paper_config, "judge": {**paper_config["judge"], "base_url": address}}
    message = r"^config: judge.base_url is not as it should"
    with pytest.raises(ConfigError, match=message) as error_info:
        check_config(config)
    assert "22" not in str(error_info.value)


def test_quotations_of_a_server_are_short_and_without_the_key(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    access = Access(price_input=0, price_output=0, max_requests=0, max_cost=0)
    server = client.ModelServer("http://h:1/v1", access, section="judge", kept="")
    assert server.quote(f"a\ud800{KEY}") == "a?[key]"
    assert len(server.quote("x" * 10**7)) == 500
