import pytest

from eulerscan.cli import main


@pytest.fixture
def run(capsys):
    """Run a command line, check its exit code, and give what it wrote to standard output and standard error."""

    def call(*arguments, status: int = 0) -> tuple[str, str]:
        with pytest.raises(SystemExit) as exit:
            main([str(argument) for argument in arguments])
        out, err = capsys.readouterr()
        assert exit.value.code == status, err
        return out, err

    return call
