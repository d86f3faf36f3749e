// The table of every choice of a training run. One line here is a flag, a key of config.toml and a
// choice that `compare` can vary.
#include "headlight/train/config_field.h"
#include "headlight/train/config_field_makers.h"

namespace headlight {
namespace {

using internal::BooleanField;
using internal::ChoiceField;
using internal::FieldRange;
using internal::Named;
using internal::NumberField;
using internal::TextField;
using internal::TextsField;
using internal::WindowField;

// The member of a config that a field is about, const as the config is.
#define HEADLIGHT_MEMBER(member) ([](auto& c) -> auto& { return c.member; })

constexpr double kMost = 1e9;  // of counts
constexpr FieldRange kPositive{1, kMost};
constexpr FieldRange kBelowOne{0, 0.999999};

void AddDataFields(std::vector<ConfigField>& fields) {
  constexpr const char* kSection = "data";
  fields.push_back(TextsField(
      {"data", kSection, "Training text: files, archives or folders; may be repeated", "PATH"},
      HEADLIGHT_MEMBER(data.data)));
  fields.push_back(TextsField(
      {"valid", kSection,
       "Validation text; without it, the validation part of the data, or a share of it", "PATH"},
      HEADLIGHT_MEMBER(data.valid)));
  fields.push_back(NumberField(
      {"valid-share", kSection, "Share of each label that is kept for validation", "SHARE"},
      FieldRange{0, 0.9, true}, HEADLIGHT_MEMBER(data.valid_share)));
  fields.push_back(NumberField({"split-seed", kSection, "Seed of that share's choice"},
                               FieldRange{0, 9e15}, HEADLIGHT_MEMBER(data.split_seed)));
  fields.push_back(ChoiceField(
      {"format", kSection, "How the data are read; auto looks at the content"},
      Named({DataFormat::kAuto, DataFormat::kFolders, DataFormat::kArchive, DataFormat::kCsv,
             DataFormat::kTsv, DataFormat::kJsonl, DataFormat::kLabelText, DataFormat::kTextLabel},
            DataFormatName),
      HEADLIGHT_MEMBER(data.read.format)));
  fields.push_back(
      TextField({"text-column", kSection,
                 "CSV and TSV: name or number (from 1) of the text's column", "COLUMN"},
                HEADLIGHT_MEMBER(data.read.text_column)));
  fields.push_back(TextField(
      {"label-column", kSection, "CSV and TSV: name or number of the label's column", "COLUMN"},
      HEADLIGHT_MEMBER(data.read.label_column)));
  fields.push_back(ChoiceField<HeaderMode>(
      {"header", kSection, "CSV and TSV: whether the first row names the columns"},
      {{"auto", HeaderMode::kAuto}, {"yes", HeaderMode::kYes}, {"no", HeaderMode::kNo}},
      HEADLIGHT_MEMBER(data.read.header)));
  fields.push_back(TextField({"text-field", kSection, "JSONL: name of the text's field", "FIELD"},
                             HEADLIGHT_MEMBER(data.read.text_field)));
  fields.push_back(TextField({"label-field", kSection, "JSONL: name of the label's field", "FIELD"},
                             HEADLIGHT_MEMBER(data.read.label_field)));
}

void AddTextFields(std::vector<ConfigField>& fields) {
  constexpr const char* kSection = "text";
  fields.push_back(ChoiceField(
      {"tokenizer", kSection, "What a token is; auto: Chinese by character, other words whole"},
      Named({TokenizerKind::kAuto, TokenizerKind::kWords, TokenizerKind::kCharacters,
             TokenizerKind::kBytes},
            TokenizerKindName),
      HEADLIGHT_MEMBER(text.tokenizer.kind)));
  fields.push_back(ChoiceField<LetterCase>(
      {"case", kSection, "Whether capital letters are told from small ones"},
      {{"lower", LetterCase::kLower}, {"keep", LetterCase::kKeep}},
      HEADLIGHT_MEMBER(text.tokenizer.letter_case)));
  fields.push_back(
      ChoiceField<HtmlHandling>({"html", kSection, "Whether HTML tags and entities are cleaned up"},
                                {{"clean", HtmlHandling::kClean}, {"keep", HtmlHandling::kKeep}},
                                HEADLIGHT_MEMBER(text.tokenizer.html)));
  fields.push_back(NumberField({"max-len", kSection, "Tokens of a text that are read"},
                               FieldRange{1, 1 << 20}, HEADLIGHT_MEMBER(text.max_len)));
  fields.push_back(NumberField({"vocabulary", kSection, "Tokens that are known, at most"},
                               FieldRange{3, 1 << 24}, HEADLIGHT_MEMBER(text.vocabulary.max_size)));
  fields.push_back(NumberField(
      {"min-count", kSection, "Times that a token must occur in the training text to be known"},
      kPositive, HEADLIGHT_MEMBER(text.vocabulary.min_count)));
}

void AddModelSizeFields(std::vector<ConfigField>& fields) {
  constexpr const char* kSection = "model";
  fields.push_back(NumberField({"layers", kSection, "Blocks of attention and feed-forward"},
                               FieldRange{0, 1024}, HEADLIGHT_MEMBER(model.layers)));
  fields.push_back(NumberField({"heads", kSection, "Attention heads of each layer"},
                               FieldRange{1, 4096}, HEADLIGHT_MEMBER(model.heads)));
  fields.push_back(NumberField({"kv-heads", kSection,
                                "Key and value heads, each shared by a group of heads "
                                "(grouped-query; 1: multi-query); must divide heads",
                                "N|heads"},
                               FieldRange{1, 4096}, HEADLIGHT_MEMBER(model.kv_heads),
                               {{"heads", 0}}));
  fields.push_back(NumberField({"dim", kSection, "Features of a token"}, FieldRange{1, 1 << 16},
                               HEADLIGHT_MEMBER(model.dim)));
  fields.push_back(NumberField(
      {"head-dim", kSection,
       "Features of a head; split: dim / heads, so that parameters do not grow with heads",
       "N|split"},
      FieldRange{1, 1 << 16}, HEADLIGHT_MEMBER(model.head_dim), {{"split", 0}}));
  fields.push_back(NumberField({"qk-rank", kSection,
                                "Features of a head's queries and keys, the rank of its scores; "
                                "values keep head-dim",
                                "N|head-dim"},
                               FieldRange{1, 1 << 16}, HEADLIGHT_MEMBER(model.qk_rank),
                               {{"head-dim", 0}}));
  fields.push_back(NumberField({"feed-forward", kSection, "Hidden features of a block", "N|4x"},
                               FieldRange{1, 1 << 20}, HEADLIGHT_MEMBER(model.feed_forward),
                               {{"4x", 0}}));
}

void AddModelFields(std::vector<ConfigField>& fields) {
  constexpr const char* kSection = "model";
  const auto name = [](auto choice) { return Name(choice); };
  fields.push_back(
      ChoiceField({"positions", kSection, "How the order of tokens is told"},
                  Named({PositionKind::kNone, PositionKind::kLearned, PositionKind::kSinusoidal,
                         PositionKind::kRelative, PositionKind::kAlibi},
                        name),
                  HEADLIGHT_MEMBER(model.positions)));
  fields.push_back(NumberField(
      {"relative-distance", kSection,
       "Relative positions: distances from this on are one; max-len: each has its own",
       "N|max-len"},
      FieldRange{1, 1 << 20}, HEADLIGHT_MEMBER(model.relative_distance), {{"max-len", 0}}));
  fields.push_back(BooleanField(
      {"relative-values", kSection, "Relative positions: add to the values as well as to the keys"},
      HEADLIGHT_MEMBER(model.relative_values)));
  fields.push_back(ChoiceField({"norm", kSection, "Normalisation after or before each sublayer"},
                               Named({NormPlacement::kPost, NormPlacement::kPre}, name),
                               HEADLIGHT_MEMBER(model.norm)));
  fields.push_back(ChoiceField({"activation", kSection, "Of the feed-forward layer"},
                               Named({HiddenActivation::kRelu, HiddenActivation::kGelu}, name),
                               HEADLIGHT_MEMBER(model.activation)));
  fields.push_back(ChoiceField({"pooling", kSection, "How the tokens of a text become one vector"},
                               Named({PoolingChoice::kMean, PoolingChoice::kFirst,
                                      PoolingChoice::kMax, PoolingChoice::kAttention},
                                     name),
                               HEADLIGHT_MEMBER(model.pooling)));
  fields.push_back(BooleanField({"causal", kSection, "Tokens attend to earlier ones only"},
                                HEADLIGHT_MEMBER(model.causal)));
  fields.push_back(
      WindowField({"window", kSection,
                   "Tokens attend to those at most so far away; LEFT,RIGHT (or LEFT:RIGHT): so far "
                   "before and behind; with causal only before",
                   "N|LEFT,RIGHT|off"},
                  FieldRange{0, 1 << 20}, HEADLIGHT_MEMBER(model.window)));
  fields.push_back(
      ChoiceField({"attention", kSection,
                   "How attention is computed: fused, or to compare with it naive "
                   "(whole n x n matrices) or per-head (these, one head at a time)"},
                  Named({AttentionImplementation::kFused, AttentionImplementation::kNaive,
                         AttentionImplementation::kPerHead},
                        name),
                  HEADLIGHT_MEMBER(model.attention)));
  fields.push_back(ChoiceField(
      {"precision", kSection,
       "Of the operands of dense products and attention; sums, parameters and optimizer "
       "state are fp32 in either"},
      Named({Precision::kF32, Precision::kBF16}, name), HEADLIGHT_MEMBER(model.precision)));
  fields.push_back(BooleanField({"projection-bias", kSection, "Bias of query, key and value"},
                                HEADLIGHT_MEMBER(model.projection_bias)));
  fields.push_back(BooleanField({"output-projection", kSection, "Projection after the heads"},
                                HEADLIGHT_MEMBER(model.output_projection)));
  fields.push_back(BooleanField({"output-bias", kSection, "Bias of that projection"},
                                HEADLIGHT_MEMBER(model.output_bias)));
  fields.push_back(ChoiceField(
      {"scale", kSection, "Of scores: 1/sqrt(qk-rank), qk-rank^-1/4, or scale-value"},
      Named({ScaleKind::kInverseSqrt, ScaleKind::kInverseFourthRoot, ScaleKind::kGiven}, name),
      HEADLIGHT_MEMBER(model.scale)));
  fields.push_back(NumberField({"scale-value", kSection, "The scale when it is given", "X"},
                               FieldRange{0, 1e6}, HEADLIGHT_MEMBER(model.scale_value)));
  fields.push_back(NumberField({"dropout", kSection, "Of embeddings and sublayer outputs", "RATE"},
                               kBelowOne, HEADLIGHT_MEMBER(model.dropout)));
  fields.push_back(NumberField({"attention-dropout", kSection, "Of attention weights", "RATE"},
                               kBelowOne, HEADLIGHT_MEMBER(model.attention_dropout)));
  fields.push_back(NumberField({"norm-epsilon", kSection, "Added to a norm's variance", "X"},
                               FieldRange{0, 1, true}, HEADLIGHT_MEMBER(model.norm_epsilon)));
  fields.push_back(
      NumberField({"embedding-std", kSection, "Standard deviation of initial token vectors", "X"},
                  FieldRange{0, 1e3}, HEADLIGHT_MEMBER(model.embedding_std)));
}

void AddOptimizerFields(std::vector<ConfigField>& fields) {
  constexpr const char* kSection = "training";
  fields.push_back(ChoiceField<OptimizerKind>(
      {"optimizer", kSection, "adamw shrinks weights too, norms and biases excepted"},
      {{"adam", OptimizerKind::kAdam}, {"adamw", OptimizerKind::kAdamW}},
      HEADLIGHT_MEMBER(training.optimizer.kind)));
  fields.push_back(NumberField({"lr", kSection, "Learning rate, at its highest", "RATE"},
                               FieldRange{0, 1e6, true}, HEADLIGHT_MEMBER(training.learning_rate)));
  fields.push_back(
      ChoiceField<ScheduleKind>({"schedule", kSection, "Of the learning rate after the warm-up"},
                                {{"constant", ScheduleKind::kConstant},
                                 {"linear", ScheduleKind::kLinear},
                                 {"cosine", ScheduleKind::kCosine}},
                                HEADLIGHT_MEMBER(training.schedule)));
  fields.push_back(NumberField(
      {"warmup", kSection,
       "Steps of warm-up, or below 1 their share; auto: none if constant, else a tenth", "X|auto"},
      FieldRange{0, kMost}, HEADLIGHT_MEMBER(training.warmup), {{"auto", -1}}));
  fields.push_back(NumberField({"weight-decay", kSection, "Of adamw", "X"}, FieldRange{0, 1e3},
                               HEADLIGHT_MEMBER(training.optimizer.weight_decay)));
  fields.push_back(NumberField({"beta1", kSection, "Of Adam: memory of the gradient", "X"},
                               kBelowOne, HEADLIGHT_MEMBER(training.optimizer.beta1)));
  fields.push_back(NumberField({"beta2", kSection, "Of Adam: memory of its square", "X"}, kBelowOne,
                               HEADLIGHT_MEMBER(training.optimizer.beta2)));
  fields.push_back(NumberField({"epsilon", kSection, "Of Adam: added to the root", "X"},
                               FieldRange{0, 1, true},
                               HEADLIGHT_MEMBER(training.optimizer.epsilon)));
  fields.push_back(
      NumberField({"clip", kSection, "Largest norm of the gradient; off: any", "X|off"},
                  FieldRange{0, kMost, true}, HEADLIGHT_MEMBER(training.clip), {{"off", 0}}));
}

void AddTrainingFields(std::vector<ConfigField>& fields) {
  constexpr const char* kSection = "training";
  fields.push_back(NumberField({"epochs", kSection, "Passes over the training text"}, kPositive,
                               HEADLIGHT_MEMBER(training.epochs)));
  fields.push_back(NumberField(
      {"steps", kSection, "Ends training after so many steps, whatever epochs says", "N|by-epochs"},
      kPositive, HEADLIGHT_MEMBER(training.steps), {{"by-epochs", 0}}));
  fields.push_back(NumberField({"batch", kSection, "Texts of a training step"},
                               FieldRange{1, 1 << 20}, HEADLIGHT_MEMBER(training.batch)));
  fields.push_back(ChoiceField<BatchOrder>(
      {"batching", kSection, "random, or bucket: texts of like length together"},
      {{"random", BatchOrder::kRandom}, {"bucket", BatchOrder::kBucket}},
      HEADLIGHT_MEMBER(training.order)));
  fields.push_back(NumberField(
      {"label-smoothing", kSection, "Share of a label's weight that all labels get", "SHARE"},
      kBelowOne, HEADLIGHT_MEMBER(training.label_smoothing)));
  fields.push_back(NumberField({"seed", kSection, "Of initial weights, order and dropout"},
                               FieldRange{0, 9e15}, HEADLIGHT_MEMBER(training.seed)));
  fields.push_back(NumberField(
      {"threads", kSection, "Does not change results; auto: one per physical core", "N|auto"},
      FieldRange{1, 1024}, HEADLIGHT_MEMBER(training.threads), {{"auto", 0}}));
  fields.push_back(ChoiceField<OnNonfinite>(
      {"on-nonfinite", kSection, "stop, or zero: non-finite attention scores count as 0"},
      {{"stop", OnNonfinite::kStop}, {"zero", OnNonfinite::kZero}},
      HEADLIGHT_MEMBER(training.on_nonfinite)));
}

void AddEvaluationFields(std::vector<ConfigField>& fields) {
  constexpr const char* kSection = "evaluation";
  fields.push_back(NumberField({"eval-batch", kSection, "Texts evaluated at a time"},
                               FieldRange{1, 1 << 20}, HEADLIGHT_MEMBER(evaluation.batch)));
  fields.push_back(ChoiceField<BestBy>(
      {"best-by", kSection, "What makes an epoch the best one"},
      {{"accuracy", BestBy::kAccuracy}, {"loss", BestBy::kLoss}, {"macro-f1", BestBy::kMacroF1}},
      HEADLIGHT_MEMBER(evaluation.best_by)));
  fields.push_back(NumberField(
      {"patience", kSection, "Epochs without a better one after which training stops", "N|off"},
      kPositive, HEADLIGHT_MEMBER(evaluation.patience), {{"off", 0}}));
}

void AddOutputFields(std::vector<ConfigField>& fields) {
  constexpr const char* kSection = "output";
  fields.push_back(NumberField({"log-every", kSection, "Steps between records of the metrics"},
                               kPositive, HEADLIGHT_MEMBER(output.log_every)));
  fields.push_back(NumberField(
      {"probe-every", kSection, "Steps between records of what each head does", "N|off"}, kPositive,
      HEADLIGHT_MEMBER(output.probe_every), {{"off", 0}}));
  fields.push_back(NumberField({"probe-texts", kSection, "Texts that heads are measured on"},
                               FieldRange{1, 4096}, HEADLIGHT_MEMBER(output.probe_texts)));
  fields.push_back(NumberField(
      {"checkpoint-every", kSection, "Steps between checkpoints, besides one each epoch", "N|off"},
      kPositive, HEADLIGHT_MEMBER(output.checkpoint_every), {{"off", 0}}));
}

#undef HEADLIGHT_MEMBER

std::vector<ConfigField> MakeFields() {
  std::vector<ConfigField> fields;
  AddDataFields(fields);
  AddTextFields(fields);
  AddModelSizeFields(fields);
  AddModelFields(fields);
  AddTrainingFields(fields);
  AddOptimizerFields(fields);
  AddEvaluationFields(fields);
  AddOutputFields(fields);
  return fields;
}

}  // namespace

const std::vector<ConfigField>& TrainFields() {
  static const std::vector<ConfigField> fields = MakeFields();
  return fields;
}

}  // namespace headlight
