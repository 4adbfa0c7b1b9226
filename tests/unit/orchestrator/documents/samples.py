"""Small real documents, made by hand."""

from __future__ import annotations

HTML = """<!DOCTYPE html>
<html><head><title> The  Page </title><style>p { color: red }</style>
<script>alert("not shown")</script></head>
<body><nav><a href="/">Home</a></nav>
<h1>Top <em>heading</em></h1>
<p>First &amp; second <b>paragraph</b>,
over two lines.</p>
<ul><li>one</li><li>two</li></ul>
<pre><code>def f():
    return 1

# not a heading</code></pre>
<table><tr><th>name</th><th>age</th></tr><tr><td>Anna</td><td>31</td></tr></table>
<h2>Below</h2># no heading either<br>and a new line
<!-- a comment -->
</body></html>
"""


def pdf(*pages: str, title: str | None = None, extra: str = "") -> bytes:
    """A PDF with a line of text on each page."""
    kids = " ".join(f"{4 + 2 * n} 0 R" for n in range(len(pages)))
    objects = [
        "<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>",
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    for place, text in enumerate(pages):
        objects.append(
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] "
            f"/Resources << /Font << /F1 3 0 R >> >> /Contents {5 + 2 * place} 0 R >>"
        )
        stream = f"BT /F1 12 Tf 72 720 Td ({text}) Tj ET"
        objects.append(f"<< /Length {len(stream)} >>\nstream\n{stream}\nendstream")
    trailer = f"/Size {len(objects) + 2} /Root 1 0 R {extra}"
    if title is not None:
        objects.append(f"<< /Title ({title}) >>")
        trailer += f" /Info {len(objects)} 0 R"
    body = b"%PDF-1.4\n"
    places = []
    for number, told in enumerate(objects, 1):
        places.append(len(body))
        body += f"{number} 0 obj\n{told}\nendobj\n".encode("latin-1")
    table = "".join(f"{place:010} 00000 n \n" for place in places)
    end = f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n{table}trailer\n<< {trailer} >>\n"
    return body + f"{end}startxref\n{len(body)}\n%%EOF\n".encode("latin-1")


def encrypted_pdf(text: str, password: str) -> bytes:
    """The same behind a password."""
    import io

    from pypdf import PdfReader, PdfWriter

    writer = PdfWriter(clone_from=PdfReader(io.BytesIO(pdf(text))))
    writer.encrypt(password, algorithm="RC4-128")
    written = io.BytesIO()
    writer.write(written)
    return written.getvalue()
