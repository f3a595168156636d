"""The page in a real browser: its counts, its drawing, and no network requests."""

import base64
import json
import shutil

import numpy as np
import pytest
import torch
from drawing import random_complex

import eulerscan as es
from eulerscan import testing
from eulerscan.explorer import MAX_SIMPLICES, ColorMap, page, write_page
from eulerscan.plot.transforms import image_directions

FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@pytest.fixture(scope="module")
def browser():
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if chromium is None:
        pytest.skip("no Chromium on this machine")
    with playwright.sync_playwright() as driver:
        started = driver.chromium.launch(executable_path=chromium, args=FLAGS)
        yield started.new_context(viewport={"width": 1000, "height": 700})
        started.close()


@pytest.fixture
def visit(browser, tmp_path):
    """Open the page of a shape. At the end, it must have logged no error and fetched nothing but itself."""
    errors, requests, pages = [], [], []

    def visit(shape, *, name="a shape", scheme="light", **options):
        file = tmp_path / "page.html"
        write_page(shape, file, name=name, **options)
        shown = browser.new_page()
        shown.emulate_media(color_scheme=scheme)
        shown.on("console", lambda message: errors.append(message.text))
        shown.on("pageerror", lambda error: errors.append(str(error)))
        shown.on("request", lambda request: requests.append(request.url))
        shown.goto(file.as_uri())
        pages.append(shown)
        return shown

    yield visit
    for shown in pages:
        shown.close()
    assert not errors
    assert set(requests) == {(tmp_path / "page.html").as_uri()}


def tetrahedra() -> es.Complex:
    points = torch.tensor([[0.0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 1]], dtype=torch.float64)
    return es.Complex(points, [torch.tensor([[0, 1], [1, 2], [2, 3], [3, 4]])]).closure()


SHAPES = {
    "graph": lambda: testing.known_shapes()["graph"].complex,
    "mesh": lambda: testing.torus().complex,
    "cloud": lambda: es.Complex(torch.rand(50, 3, dtype=torch.float64)),
    "solid": tetrahedra,
    "image": lambda: es.convert.from_image(np.eye(5) + np.eye(5)[::-1]).to(torch.float64),
    "point": lambda: testing.point().complex,
    "weighted": lambda: random_complex(np.random.default_rng(0), weighted=True),
}


LIT = """() => {
    const { lit, raster } = window.explorer.stage, colors = new Set(lit);
    return raster.colors.reduce((count, color) => count + colors.has(color), 0);
}"""


def settle(shown) -> None:
    """Wait until changes are drawn."""
    shown.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")


def read_numbers(shown) -> dict[str, float]:
    settle(shown)
    numbers = {"euler": shown.locator("#euler").inner_text()}
    for row in shown.locator("#counts tr").all():
        numbers[row.locator("th").inner_text()] = row.locator("td").first.inner_text()
    return {name: float(text.replace("−", "-").replace(",", "")) for name, text in numbers.items()}


@pytest.mark.parametrize("kind", SHAPES)
def test_the_curves_of_the_page_are_those_of_ect(kind, visit):
    shape = SHAPES[kind]().normalized("unit_ball")
    directions = torch.cat([es.directions.uniform(7, shape.dim, dtype=torch.float64), torch.eye(shape.dim).double()])
    # Exact heights of vertices besides a grid: a vertex on a threshold counts.
    heights = torch.cat([es.thresholds(41, dtype=torch.float64), shape.points[:, 0]]).sort().values
    shown = visit(shape, config=es.ECTConfig(normalize=None))
    curves = shown.evaluate(
        "([directions, heights]) => directions.map((d) => window.explorer.sweep.curve(d, heights))",
        [directions.tolist(), heights.tolist()],
    )
    expected = es.ect(shape, directions, heights)[0]
    # Sums of weights are rounded in a different order; without weights they are integers.
    tolerance = 1e-12 if kind == "weighted" else 0
    torch.testing.assert_close(torch.tensor(curves, dtype=torch.float64), expected, rtol=0, atol=tolerance)


def test_heights_on_the_lattice_count_as_in_ect(visit):
    """Many ties: rows of pixels have equal heights in the directions of axes and diagonals."""
    shape = es.convert.from_image(np.pad(np.ones((6, 6)), 1) * (np.indices((8, 8)).sum(axis=0) % 3 > 0)).to(torch.float64)
    shown = visit(shape, config=es.ECTConfig(radius=8.0, normalize=None))
    heights = torch.arange(-8.0, 9.0, dtype=torch.float64)
    for angle in range(0, 360, 45):
        shown.locator("#azimuth").fill(str(angle))
        direction = shown.evaluate("window.explorer.direction")
        curve = shown.evaluate("([d, t]) => window.explorer.sweep.curve(d, t)", [direction, heights.tolist()])
        assert direction == es.directions.circle(8, dtype=torch.float64)[angle // 45].tolist()
        assert curve == es.ect(shape, torch.tensor([direction]).double(), heights)[0, 0].tolist()


@pytest.mark.parametrize("kind", ["graph", "mesh", "solid"])
def test_sliders_update_the_counts_below_the_plane(kind, visit):
    shape = SHAPES[kind]().normalized("unit_ball")
    shown = visit(shape, config=es.ECTConfig(radius=1.1, normalize=None))
    for azimuth, elevation, step in ((0, 0, 500), (45, 90, 300), (210, -35, 720), (210, -35, 1000)):
        shown.locator("#azimuth").fill(str(azimuth))
        if shape.dim == 3:
            shown.locator("#elevation").fill(str(elevation))
        shown.locator("#height").fill(str(step))
        found = read_numbers(shown)
        direction = torch.tensor([shown.evaluate("window.explorer.direction")], dtype=torch.float64)
        threshold = es.thresholds(1001, 1.1, dtype=torch.float64)[step]
        below = (shape.points @ direction[0]) <= threshold
        assert found["vertices"] == int(below.sum())
        names = {2: "edges", 3: "triangles", 4: "tetrahedra"}
        for level in shape.simplices:
            assert found[names[len(level)]] == int(below[level.long()].all(dim=0).sum())
        assert found["euler"] == es.ect(shape, direction, threshold[None]).item()
    assert found["euler"] == shape.euler_characteristic().item()


@pytest.mark.parametrize(
    ("kind", "scheme"),
    [("graph", "light"), ("weighted", "dark"), ("mesh", "light"), ("cloud", "dark"), ("image", "light"), ("mesh", "dark")],
)
def test_the_part_below_the_plane_is_highlighted(kind, scheme, visit):
    shown = visit(SHAPES[kind](), scheme=scheme)
    lit = []
    for step in (0, 500, 1000):
        shown.locator("#height").fill(str(step))
        settle(shown)
        lit.append(shown.evaluate(LIT))
    assert lit[0] == 0
    assert lit[0] < lit[1] < lit[2]
    before = shown.locator("#shape").screenshot()
    shown.locator("#height").fill("400")
    settle(shown)
    assert shown.locator("#shape").screenshot() != before


@pytest.mark.parametrize("kind", ["graph", "mesh"])
def test_a_hidden_page_is_drawn_when_it_is_shown(kind, visit):
    shown = visit(SHAPES[kind]())
    shown.evaluate("""() => {
        document.body.style.display = "none";
        document.getElementById("counts").replaceChildren();
        window.explorer = new Explorer(window.explorer.data);
    }""")
    assert shown.evaluate("window.explorer.stage.width") == 0
    shown.evaluate("document.body.style.display = ''")
    # Not wait_for_function, which uses eval, forbidden by the page. Resizing takes one frame, drawing the next.
    settle(shown)
    settle(shown)
    assert shown.evaluate("window.explorer.stage.width") > 0
    assert shown.evaluate(LIT) > 0


def test_rotating_the_view_changes_the_picture_but_no_count(visit):
    shown = visit(SHAPES["mesh"]())
    before, numbers = shown.locator("#shape").screenshot(), read_numbers(shown)
    box = shown.locator("#shape").bounding_box()
    shown.mouse.move(box["x"] + 100, box["y"] + 100)
    shown.mouse.down()
    shown.mouse.move(box["x"] + 260, box["y"] + 150)
    shown.mouse.up()
    shown.wait_for_timeout(300)
    dragged = shown.locator("#shape").screenshot()
    shown.locator("#shape").focus()
    shown.keyboard.press("ArrowUp")
    shown.wait_for_timeout(300)
    rotated = shown.locator("#shape").screenshot()
    shown.locator("#reset").click()
    shown.wait_for_timeout(300)
    assert len({before, dragged, rotated}) == 3
    assert read_numbers(shown) == numbers
    assert shown.evaluate("[window.explorer.stage.yaw, window.explorer.stage.pitch]") == [-1.05, 0.42]


def test_all_controls_are_accessible_by_keyboard(visit):
    shown = visit(SHAPES["mesh"]())
    reached = []
    for _ in range(6):
        shown.keyboard.press("Tab")
        reached.append(shown.evaluate("document.activeElement.id"))
    assert reached == ["shape", "azimuth", "elevation", "height", "sweep", "reset"]
    shown.locator("#height").focus()
    shown.keyboard.press("ArrowRight")
    assert shown.locator("#height").input_value() == "501"
    for slider in ("azimuth", "elevation", "height"):
        assert shown.locator(f"label[for={slider}]").inner_text()


def test_a_sweep_runs_to_the_top_and_stops(visit):
    shown = visit(SHAPES["graph"]())
    shown.locator("#height").fill("950")
    shown.locator("#sweep").click()
    assert shown.locator("#sweep").inner_text() == "Stop"
    shown.get_by_role("button", name="Sweep the height").wait_for(timeout=20_000)
    assert shown.locator("#height").input_value() == "1000"


def test_a_restarted_sweep_runs_once(visit):
    shown = visit(SHAPES["graph"]())
    steps = shown.evaluate("""() => new Promise((done) => {
        const { explorer } = window, { change } = explorer;
        let steps = 0;
        for (const on of [true, false, true]) explorer.play(on);
        explorer.change = (...what) => { steps += 1; change.apply(explorer, what); };
        requestAnimationFrame(() => { explorer.play(false); done(steps); });
    })""")
    assert steps == 1


@pytest.mark.parametrize(("kind", "up"), [("graph", "z"), ("mesh", "z"), ("mesh", "y")])
def test_a_click_on_the_transform_selects_direction_and_height(kind, up, visit):
    shown = visit(SHAPES[kind](), up=up)
    settle(shown)
    left, top, right, bottom = shown.evaluate("window.explorer.transformLayout.box")
    position = {"x": left + 0.75 * (right - left), "y": top + 0.25 * (bottom - top)}
    shown.locator("#transform").click(position=position)
    assert 700 < int(shown.locator("#height").input_value()) < 800
    settle(shown)
    rows, row = shown.evaluate("[window.explorer.image.rows, window.explorer.row]")
    assert abs(row - rows // 4) <= 2  # a row is less than a pixel
    direction = torch.tensor(shown.evaluate("window.explorer.direction"))
    directions = image_directions(rows, len(direction), up).float()
    assert direction @ directions[row] > 0.999  # sliders have a step of one degree


def test_the_axis_that_is_up_changes_the_view_but_no_number(visit):
    shape, heights = SHAPES["mesh"](), [-0.5, 0.0, 0.5]
    pages = [visit(shape, up=up) for up in "zy"]
    ups = [shown.evaluate("window.explorer.stage.view()[1]") for shown in pages]
    assert [max(range(3), key=lambda axis: up[axis]) for up in ups] == [2, 1]
    directions = es.directions.fibonacci(9).tolist()
    code = "([directions, heights]) => directions.map((d) => window.explorer.sweep.curve(d, heights))"
    curves = [shown.evaluate(code, [directions, heights]) for shown in pages]
    assert curves[0] == curves[1]
    for shown, top in zip(pages, ([0, 0, 1], [0, 1, 0]), strict=True):
        shown.locator("#elevation").fill("90")
        assert shown.evaluate("window.explorer.direction") == top


def test_one_outlier_does_not_take_the_colors_of_the_page(monkeypatch):
    values = torch.ones(5, 100, dtype=torch.float64)
    values[0, 0] = 40
    monkeypatch.setattr(es.ECTConfig, "transform", lambda *_: values[None])
    data = json.loads(
        page(torch.rand(3, 2), name="spike", config=es.ECTConfig(5, 100)).split('id="data">')[1].split("</script>")[0]
    )
    assert data["limits"] == [0, 1]


def test_the_name_of_a_file_cannot_break_the_page(visit):
    name = "</script><script>document.title='broken'</script>&amp;{{style}}.ply"
    shown = visit(SHAPES["cloud"](), name=name)
    assert shown.locator("#name").inner_text() == name
    assert shown.title() == f"{name} · eulerscan"
    assert shown.evaluate("document.scripts.length") == 1  # the data element is removed


def test_the_path_of_a_page_may_be_a_string(tmp_path):
    write_page(torch.rand(3, 2), str(tmp_path / "page.html"), name="three points")
    assert (tmp_path / "page.html").read_text(encoding="utf-8").startswith("<!DOCTYPE html>")


@pytest.mark.parametrize(("dim", "word"), [(2, "line"), (3, "plane")])
def test_the_plane_is_swept_by_a_line(dim, word):
    assert f"at or below the {word}. Made by" in page(es.Complex(torch.rand(5, dim)), name="cloud")


def test_undecodable_file_names_are_replaced():
    assert "shape?.ply" in page(torch.rand(3, 2), name="shape\udcff.ply")


def test_the_page_holds_the_exact_transform():
    shape = testing.known_shapes()["graph"].complex
    text = page(shape, name="graph", config=es.ECTConfig(5, 9, 2.0, normalize=None))
    data = json.loads(text.split('id="data">')[1].split("</script>")[0])
    values = np.frombuffer(base64.b64decode(data["transform"]["base64"]), dtype="<f4").reshape(5, 9)
    expected = es.ect(shape, es.directions.circle(5, dtype=torch.float64), es.thresholds(9, 2.0, dtype=torch.float64))[0]
    assert values.tolist() == expected.tolist()
    assert "https://" not in text
    assert "http://" not in text


def test_large_meshes_are_drawn_as_their_surface_and_free_edges():
    sphere = testing.sphere(5).complex
    far = torch.cat([sphere.points, torch.tensor([[2.0, 0, 0], [3.0, 0, 0]], dtype=torch.float64)])
    edges, triangles = sphere.simplices
    whiskers = torch.tensor([[0, 0], [1, len(sphere.points)]])  # a chord between two poles, and one to a distant point
    shape = es.Complex(far, [torch.cat([edges.long(), whiskers], dim=1), triangles])
    data = json.loads(page(shape, name="whiskers").split('id="data">')[1].split("</script>")[0])
    drawn = {name: np.frombuffer(base64.b64decode(a["base64"]), dtype="<u4") for name, a in data["drawn"].items()}
    assert len(drawn["triangles"]) == triangles.shape[1]
    assert drawn["edges"].tolist() == [edges.shape[1], edges.shape[1] + 1]
    assert drawn["vertices"].tolist() == [len(far) - 1]


@pytest.mark.parametrize(
    ("shape", "text"),
    [
        (torch.rand(5, 4), "shape must be .* got points of dimension 4"),
        (torch.rand(2, 5, 2), "shape must be one complex, got 2"),
        (torch.rand(MAX_SIMPLICES + 1, 2), "shape must have at most 1,000,000 simplices, .* got 1,000,001"),
        (torch.rand(0, 2), "shape must have .* point, got none"),
    ],
)
def test_invalid_shapes_are_named(shape, text):
    with pytest.raises(ValueError, match=text):
        page(shape, name="too much")


@pytest.mark.parametrize("option", [{"scale": 8.0}, {"variant": "sect"}, {"derivative": True}, {"divide_by": "vertices"}])
def test_transforms_other_than_the_exact_one_are_rejected(option):
    with pytest.raises(ValueError, match=f"config must be .* got .*{next(iter(option))}={next(iter(option.values()))!r}"):
        page(torch.rand(5, 2), name="smooth", config=es.ECTConfig(**option))


RED_AND_GRAY = """id => {
    const canvas = document.getElementById(id), { width, height } = canvas;
    const pixels = canvas.getContext("2d").getImageData(0, 0, width, height).data;
    let [red, gray] = [0, 0];
    for (let i = 0; i < pixels.length; i += 4) {
        if (pixels[i] > 2 * pixels[i + 1] && pixels[i] > 2 * pixels[i + 2]) red += 1;
        else if (pixels[i] > 150 && pixels[i] < 230 && Math.abs(pixels[i] - pixels[i + 1]) < 10) gray += 1;
    }
    return [red / (width * height), gray / (width * height)];
}"""


@pytest.mark.parametrize("dim", [2, 3])
def test_evidence_is_shown_as_colors_with_its_null_beside_it(dim, visit):
    """A region in the plane has the colors on its outline: a vertex inside changes no curve."""
    points = (torch.eye(3, dim) - 0.2) * torch.tensor([1.0, -1.0, 1.0])[:dim]  # facing the viewer
    triangle = es.Complex(points, [torch.tensor([[0], [1], [2]])]).closure()
    colors = ColorMap(torch.full((3,), 5.0), torch.ones(3), 1.0, 5.0, "What the colors mean.")
    shown = visit(triangle, colors=colors)
    assert shown.inner_text("#legend-sentence") == "What the colors mean."
    assert (shown.inner_text("#legend-low"), shown.inner_text("#legend-high")) == ("1", "5")
    red, gray = shown.evaluate(RED_AND_GRAY, "shape")
    assert red > 0.01
    assert (gray > 5 * red) if dim == 2 else (red > 5 * gray)
    red, gray = shown.evaluate(RED_AND_GRAY, "null")
    assert red == 0
    assert gray > 0.01


def ring(count: int = 12) -> es.Complex:
    turn = torch.arange(count, dtype=torch.float64) * (2 * torch.pi / count)
    edges = torch.stack([torch.arange(count), (torch.arange(count) + 1) % count])
    return es.Complex(torch.stack([turn.cos(), 0.9 * turn.sin()], dim=1), [edges])


@pytest.mark.parametrize("kind", ["ring", "mesh"])
def test_a_slider_warps_the_shape_and_its_transform(kind, visit):
    shape = (ring() if kind == "ring" else SHAPES["mesh"]()).normalized("center")
    warps = {"as it is": shape, "narrow": shape.with_points(shape.points * torch.tensor([1.0, 0.4, 0.7][: shape.dim]))}
    config = es.ECTConfig(24, 33, normalize="center")
    shown = visit(shape, config=config, warps=warps)
    assert shown.locator("#warp-from option").all_inner_texts() == ["as it is", "narrow"]
    pictures, radius = [], 1.1 * float(shape.points.norm(dim=1).max())
    for percent in (0, 50, 100):
        shown.locator("#warp").fill(str(percent))
        shown.wait_for_timeout(400)
        settle(shown)
        fraction = percent / 100
        expected = shape.with_points((1 - fraction) * warps["as it is"].points + fraction * warps["narrow"].points)
        points, transform = shown.evaluate("[Array.from(explorer.data.points), Array.from(explorer.data.transform)]")
        torch.testing.assert_close(torch.tensor(points, dtype=torch.float64).reshape(-1, shape.dim), expected.points)
        directions = image_directions(24, shape.dim, "z")
        curves = es.ect(expected, directions, es.thresholds(33, radius, dtype=torch.float64))[0]
        different = (torch.tensor(transform).reshape(24, 33) != curves).double().mean()
        assert different < 0.01  # but for rounded heights on a threshold
        pictures.append((shown.locator("#shape").screenshot(), shown.locator("#transform").screenshot()))
    assert len({shape for shape, _ in pictures}) == len({transform for _, transform in pictures}) == 3
    shown.locator("#warp-from").select_option("narrow")
    shown.locator("#warp").fill("0")
    shown.wait_for_timeout(400)
    assert shown.locator("#shape").screenshot() == pictures[2][0]


def test_a_page_without_warps_has_no_slider_for_them(visit):
    assert not visit(ring()).is_visible("#warp")


def test_warps_must_move_the_vertices_of_the_shape():
    with pytest.raises(ValueError, match=r"warps must move the 12 vertices .* got \[5, 2\] in 'other'"):
        page(ring(), name="ring", warps={"other": torch.rand(5, 2)})


def test_a_page_without_colors_has_no_legend(visit):
    shown = visit(torch.rand(5, 2))
    assert not shown.is_visible("#legend")
    assert not shown.is_visible("#null")


@pytest.mark.parametrize("values", [torch.ones(4), torch.tensor([1.0, float("nan"), 0.0])])
def test_colors_must_fit_the_vertices(values):
    with pytest.raises(ValueError, match="one for each of 3 vertices"):
        page(torch.rand(3, 2), name="a", colors=ColorMap(values, values, 0.0, 1.0, ""))
