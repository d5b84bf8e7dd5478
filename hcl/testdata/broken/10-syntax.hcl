provider "openai" {
  base_url =
}
