package gate

import "github.com/fourgate-dev/fourgate/proxy/judge/strictjson"

// openAICompletions reads the old completions: chat's shape with a bare text in place
// of the message.
type openAICompletions struct{ openAIChat }

func (c openAICompletions) frame(event []byte, s *strictjson.Scanner) reading {
	return c.frameOf(event, s, "text")
}

func (c openAICompletions) whole(s *strictjson.Scanner) reading { return c.wholeOf(s, "text") }
