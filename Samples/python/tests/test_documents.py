# SPDX-License-Identifier: Apache-2.0
"""The Python of the documentation, as it is written there."""

import contextlib
import doctest
import io
import pathlib
import re

import overcrank
from support import DirectoryTestCase

DIRECTORY = pathlib.Path(__file__).resolve().parent.parent
REPOSITORY = DIRECTORY.parent.parent
ARTICLE = REPOSITORY / "Sources/Overcrank/Overcrank.docc/Articles/FramesInPython.md"


class DocumentTests(DirectoryTestCase):
    def test_blocks_of_the_documents_run(self):
        for path in (ARTICLE, DIRECTORY / "README.md", REPOSITORY / "README.md"):
            blocks = re.findall(r"^```python\n(.*?)^```", path.read_text("utf-8"), re.M | re.S)
            self.assertTrue(blocks)
            with self.subTest(str(path)), contextlib.redirect_stdout(io.StringIO()) as output:
                pathlib.Path("take.mov").unlink(missing_ok=True)
                for block in blocks:
                    exec(compile(block, path.name, "exec"), {})
            self.assertTrue(output.getvalue())

    def test_the_example_of_the_module_prints_what_it_says(self):
        failed, count = doctest.testmod(overcrank)
        self.assertEqual(failed, 0)
        self.assertGreater(count, 2)
