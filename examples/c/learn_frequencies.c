/* Learns the frequencies of a rotary embedding by gradient descent, through one attention block:
 *
 *     inv_freq -> cos, sin -> q and k rotated -> scores = q k^T / sqrt(D) -> mean square distance to given scores
 *
 * The given scores are those of other, true frequencies, which are to be found. The forward pass is
 * rotary_embedding_forward and rope_apply_forward; the backward pass is rope_apply_backward, which returns the gradients
 * of cos and sin, rope_2d_backward, which makes them the gradient of the angles, and a sum: an angle is position *
 * frequency. The scores are plain loops.
 *
 *     cc learn_frequencies.c $(pkg-config --cflags --libs ropegrad) -lm && ./a.out */
#include <math.h>
#include <ropegrad/operators.h>
#include <stdio.h>
#include <stdlib.h>

enum { HEADS = 4, S = 16, D = 8, HALF = D / 2, STEPS = 200, SHOW_EVERY = 25 };
static const float STEP_SIZE = 1e-2F;

typedef float heads_of_rows[HEADS][S][D]; /* [1, HEADS, S, D]: a batch of one */
typedef float table[S][D];                /* [1, S, D] */
typedef float score_table[HEADS][S][S];

typedef struct block {
  rg_context *context;
  heads_of_rows q, k;
  score_table target;
} block;

static DLTensor describe(const void *data, int rank, int64_t *shape) {
  return (DLTensor){
      .data = (void *)data, .device = {kDLCPU, 0}, .ndim = rank, .dtype = {kDLFloat, 32, 1}, .shape = shape};
}

static void require(const block *b, rg_status status) {
  if (status == RG_OK) return;
  fprintf(stderr, "%s\n", rg_last_error(b->context));
  exit(EXIT_FAILURE);
}

static int64_t heads_shape[] = {1, HEADS, S, D}, table_shape[] = {1, S, D}, positions_shape[] = {1, S},
               frequencies_shape[] = {1, HALF, 1};

/* Positions are 0, 1, ...; emb receives the angles. */
static void make_tables(const block *b, const float inv_freq[HALF], table emb, table cos, table sin) {
  float positions[S];
  for (int s = 0; s < S; ++s) positions[s] = (float)s;
  const DLTensor p = describe(positions, 2, positions_shape), f = describe(inv_freq, 3, frequencies_shape);
  const DLTensor e = describe(emb, 3, table_shape), c = describe(cos, 3, table_shape),
                 t = describe(sin, 3, table_shape);
  require(
      b,
      rg_rotary_embedding_forward(
          b->context,
          &(rg_rotary_embedding_forward_args){
              .position_ids = &p, .inv_freq_expanded = &f, .attention_scaling = 1, .emb = &e, .cos = &c, .sin = &t}));
}

static void rotate(const block *b, table cos, table sin, heads_of_rows q_embed, heads_of_rows k_embed) {
  const DLTensor q = describe(b->q, 4, heads_shape), k = describe(b->k, 4, heads_shape);
  const DLTensor c = describe(cos, 3, table_shape), t = describe(sin, 3, table_shape);
  const DLTensor qe = describe(q_embed, 4, heads_shape), ke = describe(k_embed, 4, heads_shape);
  require(b, rg_rope_apply_forward(b->context,
                                   &(rg_rope_apply_forward_args){
                                       .q = &q, .k = &k, .cos = &c, .sin = &t, .q_embed = &qe, .k_embed = &ke}));
}

static void score(heads_of_rows q, heads_of_rows k, score_table scores) {
  for (int h = 0; h < HEADS; ++h) {
    for (int i = 0; i < S; ++i) {
      for (int j = 0; j < S; ++j) {
        float sum = 0;
        for (int d = 0; d < D; ++d) sum += q[h][i][d] * k[h][j][d];
        scores[h][i][j] = sum / sqrtf(D);
      }
    }
  }
}

/* The loss, and its gradients with respect to the rotated q and k. */
static double loss_of(const block *b, heads_of_rows q, heads_of_rows k, heads_of_rows grad_q, heads_of_rows grad_k) {
  score_table scores;
  score(q, k, scores);
  double loss = 0;
  for (int h = 0; h < HEADS; ++h) {
    for (int i = 0; i < S; ++i) {
      for (int d = 0; d < D; ++d) grad_q[h][i][d] = grad_k[h][i][d] = 0;
    }
    for (int i = 0; i < S; ++i) {
      for (int j = 0; j < S; ++j) {
        const float distance = scores[h][i][j] - b->target[h][i][j];
        loss += (double)distance * distance / (HEADS * S * S);
        const float gradient = 2 * distance / (HEADS * S * S) / sqrtf(D);
        for (int d = 0; d < D; ++d) {
          grad_q[h][i][d] += gradient * k[h][j][d];
          grad_k[h][j][d] += gradient * q[h][i][d];
        }
      }
    }
  }
  return loss;
}

/* From the gradients of the rotated q and k to that of the frequencies. */
static void backward(const block *b, heads_of_rows grad_q_embed, heads_of_rows grad_k_embed, table emb,
                     float grad_inv_freq[HALF]) {
  table grad_cos, grad_sin, grad_emb;
  const DLTensor q = describe(b->q, 4, heads_shape), k = describe(b->k, 4, heads_shape);
  const DLTensor gq = describe(grad_q_embed, 4, heads_shape), gk = describe(grad_k_embed, 4, heads_shape);
  const DLTensor gc = describe(grad_cos, 3, table_shape), gs = describe(grad_sin, 3, table_shape);
  const DLTensor e = describe(emb, 3, table_shape), ge = describe(grad_emb, 3, table_shape);
  /* grad_q and grad_k are not wanted: cos and sin are then not needed either. */
  require(b, rg_rope_apply_backward(
                 b->context,
                 &(rg_rope_apply_backward_args){
                     .grad_q_embed = &gq, .grad_k_embed = &gk, .q = &q, .k = &k, .grad_cos = &gc, .grad_sin = &gs}));
  require(b, rg_rope_2d_backward(b->context,
                                 &(rg_rope_2d_backward_args){
                                     .grad_cos = &gc, .grad_sin = &gs, .idx_theta = &e, .grad_idx_theta = &ge}));
  for (int j = 0; j < HALF; ++j) {
    grad_inv_freq[j] = 0;
    for (int s = 0; s < S; ++s) grad_inv_freq[j] += (float)s * (grad_emb[s][j] + grad_emb[s][j + HALF]);
  }
}

static double train(const block *b, float inv_freq[HALF], double *first_loss) {
  double loss = 0;
  for (int step = 0; step <= STEPS; ++step) {
    table emb, cos, sin;
    heads_of_rows q_embed, k_embed, grad_q, grad_k;
    float gradient[HALF];
    make_tables(b, inv_freq, emb, cos, sin);
    rotate(b, cos, sin, q_embed, k_embed);
    loss = loss_of(b, q_embed, k_embed, grad_q, grad_k);
    if (step == 0) *first_loss = loss;
    if (step % SHOW_EVERY == 0) printf("step %3d   loss %.3e\n", step, loss);
    backward(b, grad_q, grad_k, emb, gradient);
    for (int j = 0; j < HALF; ++j) inv_freq[j] -= STEP_SIZE * gradient[j];
  }
  return loss;
}

/* Uniform in [-1, 1), by a linear congruential generator: the same numbers everywhere. */
static float draw(unsigned *state) {
  *state = *state * 1664525U + 1013904223U;
  return (float)(*state >> 8) / (1U << 23) - 1;
}

int main(void) {
  static block b;
  unsigned state = 1;
  for (int i = 0; i < HEADS * S * D; ++i) {
    (&b.q[0][0][0])[i] = draw(&state);
    (&b.k[0][0][0])[i] = draw(&state);
  }
  const rg_status status = rg_context_create(&b.context, (DLDevice){kDLCPU, 0}, NULL);
  if (status != RG_OK) return fprintf(stderr, "%s\n", rg_status_string(status)), EXIT_FAILURE;

  float truth[HALF], inv_freq[HALF];
  for (int j = 0; j < HALF; ++j) {
    truth[j] = powf(10000, -2.0F * (float)j / D);
    inv_freq[j] = truth[j] + 0.04F * draw(&state);
  }
  table emb, cos, sin;
  heads_of_rows q_embed, k_embed;
  make_tables(&b, truth, emb, cos, sin);
  rotate(&b, cos, sin, q_embed, k_embed);
  score(q_embed, k_embed, b.target);

  printf("frequency      true     start\n");
  for (int j = 0; j < HALF; ++j) printf("%9d %9.5f %9.5f\n", j, (double)truth[j], (double)inv_freq[j]);
  double first_loss = 0;
  const double last_loss = train(&b, inv_freq, &first_loss);
  printf("frequency      true   learned\n");
  for (int j = 0; j < HALF; ++j) printf("%9d %9.5f %9.5f\n", j, (double)truth[j], (double)inv_freq[j]);
  rg_context_destroy(b.context);
  printf("the loss fell to 1/%.0f of what it was\n", first_loss / last_loss);
  return last_loss < first_loss / 1000 ? EXIT_SUCCESS : EXIT_FAILURE;
}
