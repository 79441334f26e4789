// Read YAML as Go programs do and say what was read, types included.
//
// One JSON string a line comes in: a YAML text. One JSON object a line goes out, with a list of
// documents or an error for each reader: "v2" is the dialect of Kubernetes (kubectl, Argo CD, the API
// server), "v3" that of most other programs. Scalars are texts that begin with their type: i: f: b: s: t: n:
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	v2 "go.yaml.in/yaml/v2"
	v3 "go.yaml.in/yaml/v3"
)

type answer struct {
	Documents []any  `json:"documents"`
	Error     string `json:"error,omitempty"`
}

type decoder interface{ Decode(into any) error }

func main() {
	in, out := bufio.NewReaderSize(os.Stdin, 1<<20), bufio.NewWriter(os.Stdout)
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return
		}
		var text string
		if err := json.Unmarshal(line, &text); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		told, err := json.Marshal(map[string]answer{
			"v2": read(v2.NewDecoder(strings.NewReader(text))),
			"v3": read(v3.NewDecoder(strings.NewReader(text))),
		})
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		_, _ = out.Write(append(told, '\n'))
		_ = out.Flush()
	}
}

func read(from decoder) answer {
	found := answer{Documents: []any{}}
	for {
		var document any
		err := from.Decode(&document)
		if errors.Is(err, io.EOF) {
			return found
		}
		if err != nil {
			return answer{Error: err.Error()}
		}
		found.Documents = append(found.Documents, typed(document))
	}
}

func typed(value any) any {
	switch found := value.(type) {
	case nil:
		return "n:"
	case bool:
		return "b:" + strconv.FormatBool(found)
	case int:
		return "i:" + strconv.Itoa(found)
	case int64:
		return "i:" + strconv.FormatInt(found, 10)
	case uint64:
		return "i:" + strconv.FormatUint(found, 10)
	case float64:
		return "f:" + strconv.FormatFloat(found, 'g', -1, 64)
	case string:
		return "s:" + found
	case time.Time:
		return "t:" + found.Format(time.RFC3339Nano)
	case []any:
		items := make([]any, len(found))
		for at, item := range found {
			items[at] = typed(item)
		}
		return items
	case map[string]any:
		items := map[string]any{}
		for key, item := range found {
			items[key] = typed(item)
		}
		return items
	case map[any]any:
		items := map[string]any{}
		for key, item := range found {
			items[keyed(key)] = typed(item)
		}
		return items
	default:
		return fmt.Sprintf("?:%T", value)
	}
}

// keyed returns a key as text: a key of another type keeps how it is written.
func keyed(key any) string {
	if key == nil {
		return "null"
	}
	return fmt.Sprint(key)
}
