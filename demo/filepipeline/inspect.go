package filepipeline

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"image"
	"image/gif"
	"image/jpeg"
	"image/png"
	"io"
	"io/fs"
	"strings"

	"github.com/gabriel-vasile/mimetype"
)

// format is an image format the pipeline reads. The sniffed MIME type decides the decoder. The file's extension does
// not matter. Nor does the global registry of package image, which any import can extend.
type format struct {
	name         string
	decodeConfig func(io.Reader) (image.Config, error)
	decode       func(io.Reader) (image.Image, error) // for a GIF: its first frame
}

var formats = map[string]format{
	"image/png":  {"png", png.DecodeConfig, png.Decode},
	"image/jpeg": {"jpeg", jpeg.DecodeConfig, jpeg.Decode},
	"image/gif":  {"gif", gif.DecodeConfig, gif.Decode},
}

const (
	sniffLen = 512 // bytes that decide the type

	// maxSide refuses images that are one pixel wide and millions long: the resampler's memory grows with the
	// longer side, whatever the area is.
	maxSide = 100_000
)

// A skipError says that the pipeline skips a file, which is not a failure.
type skipError struct{ reason Reason }

func (e *skipError) Error() string { return "skipped: " + string(e.reason) }

// inspect reads the file once, in a stream: it sniffs the type, decodes the header and hashes every byte. With an
// error, the returned File has the facts that were found before the error. A *skipError means that the file is no
// image.
func inspect(fsys fs.FS, name string, limits Limits) (File, error) {
	file := File{Path: name}
	r, err := openRegular(fsys, name)
	if err != nil {
		return file, err
	}
	defer r.Close()

	// All bytes pass through limited and then into hash, so that the file is read once. Bytes that the header decoder
	// buffers are hashed, too. One byte over the limit shows that the file is growing.
	limited := &io.LimitedReader{R: r, N: limits.MaxBytes + 1}
	hash := sha256.New()
	tee := io.TeeReader(limited, hash)

	head := make([]byte, sniffLen)
	n, err := io.ReadFull(tee, head)
	if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
		return file, err
	}
	head = head[:n]
	file.MIME = sniff(head)
	format, ok := formats[file.MIME]
	if !ok {
		return file, &skipError{skipReason(head, file.MIME)}
	}
	file.Format = format.name
	if file.Bytes, err = sizeWithin(r, limits.MaxBytes); err != nil {
		return file, err
	}

	config, headerErr := format.decodeConfig(io.MultiReader(bytes.NewReader(head), tee))
	file.Width, file.Height = config.Width, config.Height

	if _, err := io.Copy(hash, limited); err != nil {
		return file, err
	}
	if limited.N == 0 {
		return file, fmt.Errorf("grew past the limit of %d bytes", limits.MaxBytes)
	}
	file.Bytes = limits.MaxBytes + 1 - limited.N
	file.SHA256 = hex.EncodeToString(hash.Sum(nil))
	if headerErr != nil {
		return file, fmt.Errorf("header: %w", headerErr)
	}
	return file, checkDimensions(file, limits.MaxPixels)
}

// sniff returns the MIME type of a file with this head. A format that is built on one of the formats has the type of
// that one: an animated PNG is a PNG.
func sniff(head []byte) string {
	found := mimetype.Detect(head)
	for m := found; m != nil; m = m.Parent() {
		if _, ok := formats[m.String()]; ok {
			return m.String()
		}
	}
	return found.String()
}

// openRegular opens a file, and checks the type of the opened file, because the listing may be out
// of date.
func openRegular(fsys fs.FS, name string) (fs.File, error) {
	f, err := fsys.Open(name)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("no longer a regular file")
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

func sizeWithin(f fs.File, limit int64) (int64, error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	if info.Size() > limit {
		return info.Size(), fmt.Errorf("%d bytes, the limit is %d", info.Size(), limit)
	}
	return info.Size(), nil
}

// checkDimensions refuses a decode bomb by its declared size, before memory of that size is allocated.
func checkDimensions(f File, maxPixels int64) error {
	switch {
	case f.Width <= 0 || f.Height <= 0:
		return fmt.Errorf("declares %dx%d pixels", f.Width, f.Height)
	case f.Width > maxSide || f.Height > maxSide:
		return fmt.Errorf("declares %dx%d pixels, the limit of a side is %d", f.Width, f.Height, maxSide)
	case f.Pixels() > maxPixels:
		return fmt.Errorf("declares %dx%d = %d pixels, the limit is %d", f.Width, f.Height, f.Pixels(), maxPixels)
	}
	return nil
}

func skipReason(head []byte, mime string) Reason {
	switch {
	case len(head) == 0:
		return ReasonEmpty
	case strings.HasPrefix(mime, "image/"):
		return ReasonUnsupported
	default:
		return ReasonNoImage
	}
}
