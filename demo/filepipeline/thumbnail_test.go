package filepipeline

import (
	"errors"
	"image"
	"image/color"
	"io/fs"
	"testing"
	"testing/quick"
)

func TestFitKeepsAspectAndNeverEnlarges(t *testing.T) {
	law := func(a, b uint16) bool {
		width, height := int(a)+1, int(b)+1
		w, h := fit(width, height, thumbSide)
		short, long := min(width, height), max(width, height)
		side := min(long, thumbSide)
		off := min(w, h)*long - short*side // integers, because floats miss ties
		return w >= 1 && h >= 1 && w <= width && h <= height && max(w, h) == side &&
			(min(w, h) == 1 || 2*max(off, -off) <= long)
	}
	if !law(0xaa59, 0xc3ff) {
		t.Error("a tie")
	}
	if err := quick.Check(law, &quick.Config{MaxCount: 20_000}); err != nil {
		t.Error(err)
	}
}

func TestRenderThumbSizes(t *testing.T) {
	for _, test := range []struct {
		name string
		data []byte
		w, h int
	}{
		{name: "one pixel", data: pngOf(t, 1, 1), w: 1, h: 1},
		{name: "just fits", data: pngOf(t, 256, 100), w: 256, h: 100},
		{name: "landscape", data: jpegOf(t, 1000, 500), w: 256, h: 128},
		{name: "portrait", data: gifOf(t, 300, 600), w: 128, h: 256},
		{name: "horizontal line", data: pngOf(t, 10_000, 1), w: 256, h: 1},
		{name: "vertical line", data: pngOf(t, 1, 10_000), w: 1, h: 256},
		{name: "frame in a corner of its screen", data: partialGIF(t, 600, 300, image.Rect(10, 20, 30, 40)), w: 256, h: 128},
	} {
		t.Run(test.name, func(t *testing.T) {
			fsys := files(map[string][]byte{"x": test.data})
			file, err := inspect(fsys, "x", testLimits)
			if err != nil {
				t.Fatal(err)
			}
			thumb, err := renderThumb(fsys, file)
			if err != nil {
				t.Fatal(err)
			}
			if got, want := thumb.Bounds(), image.Rect(0, 0, test.w, test.h); got != want {
				t.Errorf("thumbnail of %dx%d is %v, want %v", file.Width, file.Height, got, want)
			}
		})
	}
}

// Picking every nth pixel would turn a fine checkerboard all black or all white; resampling makes it grey.
func TestScaleResamples(t *testing.T) {
	const side = 1024
	board := image.NewGray(image.Rect(0, 0, side, side))
	for y := range side {
		for x := range side {
			board.SetGray(x, y, color.Gray{uint8(255 * ((x + y) % 2))})
		}
	}
	thumb := scale(board, side, side)
	for _, at := range []image.Point{{0, 0}, {1, 0}, {77, 130}, {255, 255}} {
		if g := color.GrayModel.Convert(thumb.At(at.X, at.Y)).(color.Gray).Y; g < 120 || g > 136 {
			t.Errorf("grey at %v is %d, want the mean of black and white", at, g)
		}
	}
}

func TestRenderThumbRefusesOtherBytes(t *testing.T) {
	original := pngOf(t, 30, 20)
	changed := map[string][]byte{
		"shorter":   original[:len(original)-1],
		"longer":    append(original[:len(original):len(original)], 0),
		"different": append(original[:len(original)-1:len(original)-1], 'x'),
	}
	for name, data := range changed {
		t.Run(name, func(t *testing.T) {
			file, err := inspect(files(map[string][]byte{"x": original}), "x", testLimits)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := renderThumb(files(map[string][]byte{"x": data}), file); !errors.Is(err, errChanged) {
				t.Errorf("renderThumb: %v, want %v", err, errChanged)
			}
		})
	}
	t.Run("gone", func(t *testing.T) {
		if _, err := renderThumb(files(nil), File{Path: "x", MIME: "image/png"}); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("renderThumb: %v, want %v", err, fs.ErrNotExist)
		}
	})
}

func TestScaleLeavesSmallImagesAlone(t *testing.T) {
	img := image.NewPaletted(image.Rect(0, 0, 200, 100), color.Palette{color.Black, color.White})
	if got := scale(img, 200, 100); got != image.Image(img) {
		t.Errorf("scale made a new %T of an image that fits", got)
	}
}
