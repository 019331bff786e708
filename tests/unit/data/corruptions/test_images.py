"""Corruptions of images are those of the published formulas: by loops over pixels, by Pillow, by their statistics."""

from __future__ import annotations

import colorsys
import io

import numpy as np
import pytest
from fairlap.data.corruptions import blur, files, light, noise
from fairlap.data.corruptions.corruption import corrupted_image, corrupted_items
from fairlap.data.corruptions.severities import size_of, strength
from fairlap.models.slices.corruptible import CorruptibleInput
from fairlap.request.fields.data.corruption import BY_PILLOW, IMAGE_CORRUPTIONS, Corruption

PIXELS = np.random.default_rng(0).random((9, 12, 3))
PIXELS[0, 0], PIXELS[1, 1], PIXELS[2, 2] = 0.0, 1.0, 0.4  # black, white and grey


def drawn() -> np.random.Generator:
    return np.random.default_rng(1)


def photo(side: int, channels: int = 3) -> np.ndarray:
    """Draw waves and a square, as bytes that are scaled to 0..1."""
    x, y = np.meshgrid(np.linspace(0, 3, side), np.linspace(0, 2, side))
    waves = [0.5 + 0.3 * np.sin(2 * x + number) * np.cos(3 * y - number) for number in range(channels)]
    found = np.stack(waves, axis=2)
    found[side // 4 : side // 2, side // 4 : side // 2] *= 0.5
    return np.round(found * 255) / 255


@pytest.mark.parametrize("added", [0.1, 0.5])
def test_brightness_is_added_to_the_value_of_each_pixel(added: float) -> None:
    found = np.clip(light.brightness(PIXELS, added, drawn()), 0, 1)
    for place in np.ndindex(PIXELS.shape[:2]):
        hue, saturation, value = colorsys.rgb_to_hsv(*PIXELS[place])
        assert found[place] == pytest.approx(colorsys.hsv_to_rgb(hue, saturation, min(1.0, value + added)))
    assert light.brightness(PIXELS[..., :1], added, drawn()) == pytest.approx(PIXELS[..., :1] + added)


@pytest.mark.parametrize("change", [(0.3, 0), (2, 0), (5, 0.1)])
def test_saturation_is_changed_alone(change: tuple[float, float]) -> None:
    found = light.saturate(PIXELS, change, drawn())
    for place in np.ndindex(PIXELS.shape[:2]):
        hue, saturation, value = colorsys.rgb_to_hsv(*PIXELS[place])
        wanted = min(1.0, saturation * change[0] + change[1])
        assert found[place] == pytest.approx(colorsys.hsv_to_rgb(hue, wanted, value))


def test_contrast_is_about_the_mean_of_each_channel() -> None:
    found = light.contrast(PIXELS, 0.3, drawn())
    for channel in range(3):
        own = PIXELS[..., channel]
        assert found[..., channel] == pytest.approx(own.mean() + 0.3 * (own - own.mean()))


def test_defocus_is_the_mean_over_a_disc() -> None:
    image = np.random.default_rng(2).random((24, 20, 3))
    weights = blur.disc(3, 0.1)
    assert weights.sum() == pytest.approx(1)
    assert weights[8, 8 + 3] == pytest.approx(1 / 29)  # whole pixels within a radius of three
    assert weights[8, 8 + 4] == pytest.approx(0, abs=1e-20)
    found, padded = blur.defocus_blur(image, (3, 0.1), drawn()), np.pad(image, ((8, 8), (8, 8), (0, 0)), mode="reflect")
    for row, column in ((0, 0), (5, 7), (23, 19)):
        around = padded[row : row + 17, column : column + 17]
        assert found[row, column] == pytest.approx((around * weights[..., None]).sum(axis=(0, 1)))


def test_a_camera_that_moves_leaves_a_trace() -> None:
    image = np.zeros((5, 30, 1))
    image[2, 20] = 1.0
    weights = np.exp(-(np.arange(7) ** 2) / (2 * 2.0**2))
    found = blur.moved(image, 7, 2.0, 0.0)[2, :, 0]
    assert found[20 - np.arange(7)] == pytest.approx(weights / weights.sum())
    assert found.sum() == pytest.approx(1)
    assert blur.moved(np.full((9, 9, 1), 0.3), 41, 15.0, 30.0) == pytest.approx(0.3)  # farther than the image is wide


def test_zooming_keeps_a_plain_image_and_the_symmetry_of_another_one() -> None:
    assert blur.zoom_blur(np.full((32, 32, 3), 0.3), (1.26, 0.01), drawn()) == pytest.approx(0.3)
    image = photo(32, 1)
    mirrored = image + image[:, ::-1]
    found = blur.zoom_blur(mirrored, (1.16, 0.01), drawn())
    assert found.shape == image.shape
    assert np.abs(found - found[:, ::-1]).mean() < 0.02
    assert found.std() < mirrored.std()


def test_a_gaussian_blur_is_that_of_its_formula() -> None:
    line = np.zeros((1, 41, 1))
    line[0, 20] = 1.0
    found = blur.gaussian_blur(line, 2.0, drawn())[0, :, 0]
    weights = np.exp(-(np.arange(-8, 9) ** 2) / (2 * 2.0**2))
    assert found[12:29] == pytest.approx(weights / weights.sum())


def test_noise_has_the_deviation_and_the_share_that_it_states() -> None:
    grey = np.full((300, 300, 1), 0.4)
    assert (noise.gaussian_noise(grey, 0.08, drawn()) - grey).std() == pytest.approx(0.08, rel=0.02)
    assert (noise.speckle_noise(grey, 0.35, drawn()) - grey).std() == pytest.approx(0.4 * 0.35, rel=0.02)
    shot = noise.shot_noise(grey, 12, drawn())
    assert (shot.mean(), shot.var()) == (pytest.approx(0.4, rel=0.02), pytest.approx(0.4 / 12, rel=0.03))
    impulse = noise.impulse_noise(grey, 0.09, drawn())
    shares = [(impulse == value).mean() for value in (0.0, 1.0)]
    assert shares == pytest.approx([0.045, 0.045], rel=0.1)


def test_fog_is_a_fractal_by_squares_and_diamonds() -> None:
    cloud = light.fractal(4, 2.0, drawn())
    by_hand, random, step, wibble = np.zeros((4, 4)), drawn(), 4, 100.0
    while step >= 2:
        half, corners = step // 2, range(0, 4, step)
        for places in (
            [(row + half, column + half, "square") for row in corners for column in corners],
            [(row, column + half, "diamond") for row in corners for column in corners],
            [(row + half, column, "diamond") for row in corners for column in corners],
        ):
            steps = random.uniform(-wibble, wibble, len(places))
            means = []
            for row, column, kind in places:
                offsets = (
                    ((-1, -1), (-1, 1), (1, -1), (1, 1)) if kind == "square" else ((-1, 0), (1, 0), (0, 1), (0, -1))
                )
                means.append(sum(by_hand[(row + a * half) % 4, (column + b * half) % 4] for a, b in offsets) / 4)
            for (row, column, _), mean, random_step in zip(places, means, steps, strict=True):
                by_hand[row, column] = mean + wibble * random_step
        step, wibble = half, wibble / 2.0
    by_hand -= by_hand.min()
    assert cloud == pytest.approx(by_hand / by_hand.max())
    image = photo(20)
    foggy = light.fog(image, (1.5, 2.0), drawn())
    cloud = light.fractal(32, 2.0, drawn())[:20, :20, None]
    assert foggy == pytest.approx((image + 1.5 * cloud) * image.max() / (image.max() + 1.5))


def test_large_pixels_are_the_means_of_small_ones() -> None:
    pytest.importorskip("PIL", reason="`make test` installs it and runs this")
    image = photo(64)
    found = files.pixelate(image, 0.5, drawn())
    means = image.reshape(32, 2, 32, 2, 3).mean(axis=(1, 3))
    assert np.abs(found[::2, ::2] - means).max() <= 1.5 / 255  # rounded along each side
    assert (found[::2] == found[1::2]).all()


@pytest.mark.parametrize("channels", [1, 3])
def test_compression_is_pillows(channels: int) -> None:
    pillow = pytest.importorskip("PIL.Image", reason="`make test` installs it and runs this")
    image = photo(40, channels)
    found = files.jpeg_compression(image, 15, drawn())
    pixels = np.round(image * 255).astype(np.uint8)
    file = io.BytesIO()
    pillow.fromarray(pixels if channels == 3 else pixels[..., 0]).convert("RGB").save(file, "JPEG", quality=15)
    by_hand = pillow.open(file)
    expected = np.asarray(by_hand if channels == 3 else by_hand.convert("L")).reshape(image.shape)
    assert found == pytest.approx(expected / 255)


IN_TURNS = ("saturate", "pixelate")  # first less colour and then more; and sizes that fit the waves, or do not


@pytest.mark.parametrize("name", [name for name in IMAGE_CORRUPTIONS if name not in IN_TURNS])
@pytest.mark.parametrize("side", [32, 64, 128])
def test_a_larger_severity_changes_more(name: str, side: int) -> None:
    if name in BY_PILLOW:
        pytest.importorskip("PIL", reason="`make test` installs it and runs this")
    image = photo(side)
    changes = [
        float(((corrupted_image(image, Corruption(name, severity), drawn()) - image) ** 2).mean())
        for severity in (1, 3, 5)
    ]
    assert 0 < changes[0] < changes[1] < changes[2]


def test_strengths_are_those_of_the_published_sets() -> None:
    assert [size_of(*sides) for sides in ((32, 32), (64, 64), (224, 224), (300, 40))] == [
        "small",
        "middle",
        "large",
        "small",
    ]
    assert strength("gaussian_noise", 5, "large") == 0.38
    assert strength("jpeg_compression", 1, "small") == 80
    assert strength("fog", 3, "middle") == (1, 2.5)


FIRST, LAST = CorruptibleInput("x", "first", 0, 1), CorruptibleInput("x", "last", 0, 1)


@pytest.mark.parametrize("name", ["gaussian_noise", "motion_blur", "fog", "saturate"])
def test_an_item_is_corrupted_alike_in_any_batch_and_layout(name: str) -> None:
    images = np.stack([photo(32), 1 - photo(32), photo(32) ** 2]).transpose(0, 3, 1, 2).astype(np.float32)
    corruption = Corruption(name, 3)
    whole = corrupted_items(images, 4, corruption, FIRST)
    assert np.array_equal(whole[1:], corrupted_items(images[1:], 5, corruption, FIRST))
    assert not np.array_equal(whole, images)
    assert (whole.dtype, whole.shape) == (images.dtype, images.shape)
    turned = corrupted_items(images.transpose(0, 2, 3, 1), 4, corruption, LAST)
    assert turned.transpose(0, 3, 1, 2) == pytest.approx(whole, abs=1e-6)
    wide = corrupted_items(images * 2 - 1, 4, corruption, CorruptibleInput("x", "first", -1, 1))
    assert wide == pytest.approx(whole * 2 - 1, abs=1e-5)
