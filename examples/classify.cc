// Classifies a text with a trained run, and tells where the first token of every head looks.
// usage: classify RUN TEXT
#include <cstdio>
#include <string>

#include "headlight/train/checkpoint.h"
#include "headlight/train/evaluate.h"

int main(int argc, char** argv) {
  using namespace headlight;
  if (argc != 3) return 2;
  const LoadedClassifier run = LoadClassifier(argv[1]);
  const std::string text = argv[2];
  const Prediction answer = Predict(run.model, run.encoder, {&text, 1}, {}).front();
  std::printf("%s (probability %.3f)\n", answer.label.c_str(), answer.probability);
  Probe probe;  // weights are built only for whoever asks
  probe.want_weights = true;
  run.model.Forward(MakeRaggedBatch({run.encoder.Encode(text)}), {.probe = &probe}, nullptr);
  for (const ProbedWeights& head : probe.weights) {
    const double itself = head.weights.view<float>()(0, 0);
    std::printf("layer %d, head %d: %.3f on itself\n", head.layer, head.head, itself);
  }
}
