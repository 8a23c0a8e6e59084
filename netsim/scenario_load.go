package netsim

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
)

// LoadScenario reads a Scenario from TOML and checks it. A key that it does not know is an error that names the key, its place and the
// keys that are known there. Links with a trace_file need LoadScenarioFile.
func LoadScenario(r io.Reader) (*Scenario, error) {
	s, err := decodeScenario(r)
	if err != nil {
		return nil, err
	}
	return s, s.Check()
}

// LoadScenarioFile reads a Scenario from a TOML file, and its delivery traces from files whose names are relative to it.
func LoadScenarioFile(name string) (*Scenario, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	s, err := decodeScenario(f)
	if err == nil {
		err = s.ReadTraces(os.DirFS(filepath.Dir(name)))
	}
	if err == nil {
		err = s.Check()
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return s, nil
}

func decodeScenario(r io.Reader) (*Scenario, error) {
	text, err := io.ReadAll(r)
	if err != nil {
		return nil, err
	}
	s := new(Scenario)
	err = toml.NewDecoder(bytes.NewReader(text)).DisallowUnknownFields().Decode(s)
	var strict *toml.StrictMissingError
	if errors.As(err, &strict) && len(strict.Errors) > 0 {
		return nil, unknownKey(&strict.Errors[0], text)
	}
	var decode *toml.DecodeError
	if errors.As(err, &decode) {
		line, column := decode.Position()
		return nil, fmt.Errorf("line %d, column %d: %w", line, column, err)
	}
	if err != nil {
		return nil, err
	}
	return s, nil
}

// unknownKey says where an unknown key is and what is known there.
func unknownKey(e *toml.DecodeError, text []byte) error {
	line, _ := e.Position()
	key := e.Key()
	last := key[len(key)-1]
	var tree map[string]any
	if err := toml.Unmarshal(text, &tree); err != nil {
		return err
	}
	place, _ := findUnknown(tree, reflect.TypeFor[Scenario](), nil, last)
	return fmt.Errorf("line %d: unknown key %q in %s; known are %s", line, last, placeName(place), strings.Join(keysAt(place), ", "))
}

// findUnknown returns the place of a table in tree that has the given key although struct t has not.
func findUnknown(tree any, t reflect.Type, place []string, key string) ([]string, bool) {
	switch v := tree.(type) {
	case []any:
		for _, e := range v {
			if p, ok := findUnknown(e, t, place, key); ok {
				return p, true
			}
		}
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(v)) {
			f, ok := fieldOf(t, k)
			if !ok && k == key {
				return place, true
			}
			if ok {
				if p, found := findUnknown(v[k], f, append(slices.Clone(place), k), key); found {
					return p, true
				}
			}
		}
	}
	return place, false
}

func placeName(key []string) string {
	if len(key) == 0 {
		return "the scenario"
	}
	return strings.Join(key, ".")
}

// keysAt returns the keys that the table at the given place may have.
func keysAt(key []string) []string {
	t := reflect.TypeFor[Scenario]()
	for _, k := range key {
		f, ok := fieldOf(t, k)
		if !ok {
			return nil
		}
		t = f
	}
	var keys []string
	eachKey(t, func(name string, _ reflect.Type) { keys = append(keys, name) })
	return keys
}

// fieldOf returns the type of the elements of t's field with a TOML key.
func fieldOf(t reflect.Type, key string) (found reflect.Type, ok bool) {
	eachKey(t, func(name string, f reflect.Type) {
		if name == key {
			found, ok = f, true
		}
	})
	return found, ok
}

// eachKey calls f for every TOML key of struct t, those of embedded structs included.
func eachKey(t reflect.Type, f func(name string, elem reflect.Type)) {
	if t.Kind() != reflect.Struct {
		return
	}
	for i := range t.NumField() {
		field := t.Field(i)
		if field.Anonymous {
			eachKey(field.Type, f)
			continue
		}
		elem := field.Type
		for elem.Kind() == reflect.Slice || elem.Kind() == reflect.Pointer {
			elem = elem.Elem()
		}
		if name, _, _ := strings.Cut(field.Tag.Get("toml"), ","); name != "" && name != "-" {
			f(name, elem)
		}
	}
}
