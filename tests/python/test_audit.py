"""`streamsan.audit` in a process that is not recorded."""

import pytest

import streamsan


def test_the_function_itself_is_returned():
    def step(batch):
        return batch

    assert streamsan.audit(step) is step
    assert streamsan.audit(reads=["batch"], lifetime="record")(step) is step
    assert not streamsan.auditing()


def test_mistakes_are_said_at_the_definition():
    def step(batch, out=None):
        return batch

    def anything(**rest):
        return rest

    with pytest.raises(ValueError, match=r"step\(\) has no parameter 'bach'; did you mean 'batch'\?"):
        streamsan.audit(reads=["bach"])(step)
    with pytest.raises(ValueError, match=r"has no parameter 'target'; it has 'batch', 'out'"):
        streamsan.audit(writes=["target"])(step)
    with pytest.raises(TypeError, match=r'take a list of names, such as writes=\["out"\]'):
        streamsan.audit(writes="out")
    with pytest.raises(ValueError, match="lifetime="):
        streamsan.audit(lifetime="records")
    with pytest.raises(TypeError, match="only functions can be audited"):
        streamsan.audit(int)
    assert streamsan.audit(writes=["target"])(anything) is anything
