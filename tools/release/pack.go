package main

import (
	"archive/tar"
	"archive/zip"
	"cmp"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"time"
)

// member is one file of an archive.
type member struct {
	name string // with slashes, below the archive's own folder
	file string
	mode int64
}

// collect lists what an archive for p has, sorted by name.
func collect(root string, p program) ([]member, error) {
	members := []member{{name: p.exe(), file: p.file, mode: 0o755}}
	err := filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		if !d.Type().IsRegular() {
			return fmt.Errorf("pack %s: must be a regular file", file)
		}
		rel, err := filepath.Rel(root, file)
		if err != nil {
			return err
		}
		members = append(members, member{name: filepath.ToSlash(rel), file: file, mode: 0o644})
		return nil
	})
	slices.SortFunc(members, func(a, b member) int { return cmp.Compare(a.name, b.name) })
	return members, err
}

// packTar writes a tar.gz in which every time is at and every owner 0.
func packTar(w io.Writer, folder string, members []member, at time.Time) error {
	zw, err := gzip.NewWriterLevel(w, gzip.BestCompression)
	if err != nil {
		return err
	}
	tw := tar.NewWriter(zw)
	for _, m := range members {
		raw, err := os.ReadFile(m.file)
		if err != nil {
			return err
		}
		head := &tar.Header{
			Typeflag: tar.TypeReg, Name: path.Join(folder, m.name), Size: int64(len(raw)),
			Mode: m.mode, ModTime: at, Format: tar.FormatUSTAR,
		}
		if err := tw.WriteHeader(head); err != nil {
			return err
		}
		if _, err := tw.Write(raw); err != nil {
			return err
		}
	}
	return errors.Join(tw.Close(), zw.Close())
}

// packZip does the same for Windows.
func packZip(w io.Writer, folder string, members []member, at time.Time) error {
	zw := zip.NewWriter(w)
	for _, m := range members {
		raw, err := os.ReadFile(m.file)
		if err != nil {
			return err
		}
		head := &zip.FileHeader{Name: path.Join(folder, m.name), Method: zip.Deflate, Modified: at}
		head.SetMode(fs.FileMode(m.mode))
		f, err := zw.CreateHeader(head)
		if err != nil {
			return err
		}
		if _, err := f.Write(raw); err != nil {
			return err
		}
	}
	return zw.Close()
}
