package filepipeline

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"image"
	"io"
	"io/fs"

	"golang.org/x/image/draw"
)

// thumbSide is the longest side of a thumbnail in pixels.
const thumbSide = 256

// errChanged is the cause when the bytes have changed since they were hashed.
var errChanged = errors.New("changed while being processed")

// renderThumb reads the file again, decodes it and scales it. It decodes exactly the bytes that were inspected, because
// the name of the thumbnail is their hash, and their declared size was checked. So it holds the compressed bytes in
// memory; Limits.MaxBytes bounds them.
func renderThumb(fsys fs.FS, file File) (image.Image, error) {
	data, err := readExactly(fsys, file)
	if err != nil {
		return nil, err
	}
	img, err := formats[file.MIME].decode(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("decode: %w", err)
	}
	return scale(img, file.Width, file.Height), nil
}

// readExactly returns the bytes that were inspected or fails.
func readExactly(fsys fs.FS, file File) ([]byte, error) {
	r, err := openRegular(fsys, file.Path)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	data := make([]byte, file.Bytes)
	if _, err := io.ReadFull(r, data); err == io.EOF || err == io.ErrUnexpectedEOF {
		return nil, errChanged
	} else if err != nil {
		return nil, err
	}
	if _, err := io.ReadFull(r, make([]byte, 1)); err != io.EOF {
		return nil, errChanged // it goes on
	}
	if sum := sha256.Sum256(data); hex.EncodeToString(sum[:]) != file.SHA256 {
		return nil, errChanged
	}
	return data, nil
}

// scale returns img with its longest side at most thumbSide. The file declares the given size. A small image is
// returned unchanged.
func scale(img image.Image, width, height int) image.Image {
	img = onCanvas(img, width, height)
	w, h := fit(width, height, thumbSide)
	if w == width && h == height {
		return img
	}
	thumb := image.NewRGBA(image.Rect(0, 0, w, h))
	draw.CatmullRom.Scale(thumb, thumb.Bounds(), img, img.Bounds(), draw.Src, nil)
	return thumb
}

// onCanvas places the first frame of a GIF, which may cover only a part, on the screen that the file declares. Other
// formats always fill the whole screen.
func onCanvas(img image.Image, width, height int) image.Image {
	whole := image.Rect(0, 0, width, height)
	if img.Bounds() == whole {
		return img
	}
	canvas := image.NewRGBA(whole)
	draw.Draw(canvas, img.Bounds(), img, img.Bounds().Min, draw.Src)
	return canvas
}

// fit returns the size with the same aspect whose longest side is at most side, rounded to the nearest pixel, never
// larger than the original and never empty.
func fit(width, height, side int) (w, h int) {
	longest := max(width, height)
	if longest <= side {
		return width, height
	}
	shrink := func(n int) int { return max(1, (n*side+longest/2)/longest) }
	return shrink(width), shrink(height)
}
