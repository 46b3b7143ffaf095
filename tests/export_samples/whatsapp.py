"""Chats as an iPhone in Germany and phones of other countries and languages write them."""

from rejoinder.exports.base import Message

_DELETED = [
    "Tin nhắn này đã bị xóa", "Tin nhắn này đã bị xoá",
    "Bạn đã xóa tin nhắn này", "Bạn đã xoá tin nhắn này",
    "이 메시지는 삭제되었습니다", "이 메시지를 삭제했습니다", "삭제한 메시지입니다.",
    "这条消息已被删除。", "信息已删除", "您已删除这条消息。", "您删除这个信息",
    "此訊息已刪除。", "您已刪除此訊息。",
    "このメッセージは削除されました。", "このメッセージを削除しました",
]  # fmt: skip
FILES = {
    "WhatsApp Chat with Ann.txt": (
        "3/1/24, 9:58\u202fPM - Messages and calls are end-to-end encrypted. Tap to learn more.\n"
        "3/1/24, 9:59\u202fPM - Ann: Are you coming?\n"
        "We start at 10: don't be late\n"
        "3/13/24, 12:05\u202fAM - Bob B.: <Media omitted>\n"
        '3/13/24, 12:06\u202fAM - Bob B. changed the subject to "Trip: Rome"\n'
        "3/13/24, 12:07\u202fAM - Bob B.: On my way <This message was edited>\n"
    ),
    "trip/_chat.txt": (
        "\ufeff[01.03.24, 21:58:00] Trip: \u200eNachrichten sind geschützt.\n"
        "[01.03.24, 21:59:30] Ann 🤓: Wann fahren wir?\n"
        "\u200e[02.03.24, 08:00:00] Bob: \u200eBild weggelassen\n"
    ),
    "WhatsApp Chat con Luz.txt": (
        "28/2/24, 2:33 p.\u00a0m. - Luz: \u200eIMG-1.jpg (archivo adjunto)\nMi casa\n"
        "28/2/24, 2:34 p.\u00a0m. - Luz: Se eliminó este mensaje\n"
        "29/2/24, 12:05 a.\u00a0m. - Leo: notas.txt (mira la lista)\n"
    ),
    "WhatsApp 채팅.txt": (
        "[2024. 3. 1. 오후 9:58:00] 지우: 안녕 \u200e<attached: 1-PHOTO.jpg>\n"
        "[2024. 3. 1. 오후 9:59:00] 민수: 응 \u200e<편집됨>\n"
    ),
    "Trò chuyện.txt": (
        "21:58, 01/03/2024 - Lan: Đi chưa?\n"
        "Gặp lúc 9:30\n"
        "Nhớ nhé\n"
        "[21:59:30, 01/03/2024] Minh: Rồi\n"
        "12:05 SA, 13/03/2024 - Lan: Tới chưa?\n"
    ),
    "대화.txt": "2024년 3월 1일 오후 9:58 - 지우: 안녕\n",
    "삭제.txt": "".join(
        f"2024. 3. 1. 21:58 - 지우: {text}\n"
        for text in [*_DELETED, "이 메시지는 삭제되었습니다만"]
    ),
    "聊天.txt": "2024年3月13日 凌晨12:05 - 小明: 你好\n",
    "دردشة.txt": "\u200f١\u200f/٣\u200f/٢٠٢٤, ٩:٥٨ م - أحمد: نعم\n",
}
_FIRST = 1709330400.0 - 120
"""1 March 2024, 21:58 UTC."""
_NIGHT = 1710288000.0
"""13 March 2024, 00:00 UTC."""
_SPANISH = 1709130780.0
"""28 February 2024, 14:33 UTC."""
_LUZ, _KOREAN, _ARABIC = "WhatsApp Chat con Luz", "WhatsApp 채팅", "دردشة"
_ANN, _LAN = "WhatsApp Chat with Ann", "Trò chuyện"
MESSAGES = [
    Message(
        id=f"{_LAN}/1",
        text="Đi chưa?\nGặp lúc 9:30\nNhớ nhé",
        author="Lan",
        time=_FIRST,
        source=_LAN,
    ),
    Message(id=f"{_LAN}/2", text="Rồi", author="Minh", time=_FIRST + 90, source=_LAN),
    Message(id=f"{_LAN}/3", text="Tới chưa?", author="Lan", time=_NIGHT + 300, source=_LAN),
    Message(id=f"{_LUZ}/1", text="Mi casa", author="Luz", time=_SPANISH, source=_LUZ),
    Message(id=f"{_LUZ}/2", text="", author="Luz", time=_SPANISH + 60, source=_LUZ),
    Message(
        id=f"{_LUZ}/3",
        text="notas.txt (mira la lista)",
        author="Leo",
        time=_SPANISH + 34_320,
        source=_LUZ,
    ),
    Message(
        id=f"{_ANN}/1",
        text="Messages and calls are end-to-end encrypted. Tap to learn more.",
        time=_FIRST,
        source=_ANN,
        is_system=True,
    ),
    Message(
        id=f"{_ANN}/2",
        text="Are you coming?\nWe start at 10: don't be late",
        author="Ann",
        time=_FIRST + 60,
        source=_ANN,
    ),
    Message(id=f"{_ANN}/3", text="", author="Bob B.", time=_NIGHT + 300, source=_ANN),
    Message(
        id=f"{_ANN}/4",
        text='Bob B. changed the subject to "Trip: Rome"',
        time=_NIGHT + 360,
        source=_ANN,
        is_system=True,
    ),
    Message(
        id=f"{_ANN}/5",
        text="On my way",
        author="Bob B.",
        time=_NIGHT + 420,
        source=_ANN,
        edited=True,
    ),
    Message(id=f"{_KOREAN}/1", text="안녕", author="지우", time=_FIRST, source=_KOREAN),
    Message(
        id=f"{_KOREAN}/2", text="응", author="민수", time=_FIRST + 60, source=_KOREAN, edited=True
    ),
    Message(
        id="trip/1",
        text="Nachrichten sind geschützt.",
        author="Trip",
        time=_FIRST,
        source="trip",
        is_system=True,
    ),
    Message(id="trip/2", text="Wann fahren wir?", author="Ann 🤓", time=_FIRST + 90, source="trip"),
    Message(
        id="trip/3",
        text="Bild weggelassen",
        author="Bob",
        time=_FIRST + 36_120,
        source="trip",
        is_system=True,
    ),
    Message(id=f"{_ARABIC}/1", text="نعم", author="أحمد", time=_FIRST, source=_ARABIC),
    Message(id="聊天/1", text="你好", author="小明", time=_NIGHT + 300, source="聊天"),
    Message(id="대화/1", text="안녕", author="지우", time=_FIRST, source="대화"),
    *(
        Message(id=f"삭제/{number}", text=text, author="지우", time=_FIRST, source="삭제")
        for number, text in enumerate([*(len(_DELETED) * [""]), "이 메시지는 삭제되었습니다만"], 1)
    ),
]
BROKEN = {"trip/_chat.txt": FILES["trip/_chat.txt"] + "[31.02.24, 21:58:00] Ann: No such day\n"}
EMPTY = {"a.txt": ""}
REAL = {
    "whatsapp": (2_097, 0, 14, 0),
    "whatsapp/chatminer_test_dateformat1.txt": (10, 0, 3, 0),
    "whatsapp/chatminer_test_dateformat2.txt": (4, 0, 0, 0),
    "whatsapp/chatminer_test_mmddyy_24hrs.txt": (9, 0, 2, 0),
    "whatsapp/whatstk_lorem-2000.txt": (2_000, 0, 0, 0),
    "whatsapp/whatstk_pokemon.txt": (20, 0, 2, 0),
}
